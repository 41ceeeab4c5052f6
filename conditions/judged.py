"""Measures of diagnoses that a judge valued beside the rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

JUDGED = ("diagnosis_by_rule", "diagnosis_by_judge", "diagnosis_agreement")
RIGHT_FROM = 0.5  # of a value of a diagnosis


def beside_the_rule(rule: float, judged: float) -> dict[str, float]:
    """Return the measures of a diagnosis that a judge valued: by the rule, by the judge, and
    whether both call it right or both wrong.
    """
    same = (rule >= RIGHT_FROM) == (judged >= RIGHT_FROM)
    return dict(zip(JUDGED, (rule, judged, float(same)), strict=True))


def judged_diagnoses(
    records: Sequence[Mapping[str, Any]],
) -> Mapping[str, Mapping[str, float | None]]:
    """Return the means of these measures, for an evaluation's table, or None without a judge."""
    measured = [record["measures"] for record in records if JUDGED[0] in record["measures"]]
    means = {
        name.removeprefix("diagnosis_"): fmean(one[name] for one in measured) if measured else None
        for name in JUDGED
    }
    return {"diagnoses judged": means}
