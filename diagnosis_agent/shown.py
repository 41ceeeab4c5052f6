"""How diagnoses look on a page: what was ordered, and the results with their kind."""

from __future__ import annotations

from episodes.agent import Record
from episodes.shown import Shown, annotated, exchanges


def shown(record: Record) -> list[Shown]:
    """Return the transcript; a reply outside the protocol has a note about its problem."""
    pairs = exchanges(record["dialogue"], "doctor")
    return annotated(
        record, [(_ordered(doctor), {"kind": result.get("kind")}) for doctor, result in pairs]
    )


def _ordered(doctor: Record) -> dict[str, str | None]:
    return {name: doctor.get(name) for name in ("examination", "problem")}
