"""How consultations look on a page: the patient's replies with their kind and what they
mentioned.
"""

from __future__ import annotations

from episodes.agent import Record
from episodes.shown import Shown, annotated, exchanges


def shown(record: Record) -> list[Shown]:
    """Return the transcript; a reply outside the protocol has a note about its problem."""
    pairs = exchanges(record["dialogue"], "doctor")
    return annotated(
        record,
        [({"problem": doctor.get("problem")}, _mentioned(patient)) for doctor, patient in pairs],
    )


def _mentioned(patient: Record) -> dict[str, str | None]:
    return {"kind": patient.get("kind"), "mentioned": ", ".join(patient.get("facets", ()))}
