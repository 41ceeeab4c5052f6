"""The vignettes of symptomcheck-bench (`avey_vignettes.jsonl`): histories with a diagnosis, and no
examinations.

Source: https://github.com/medaks/symptomcheck-bench, MIT.
"""

from conditions.published.cases import (
    PublishedCase,
    Reader,
    Record,
    UnusableCase,
    age_of,
    sex_of,
    text_of,
)

PARTS = {
    "chief_complaints": "Chief complaint",
    "presentation": "Presentation",
    "absent_findings": "Absent findings",
    "physical_history": "Past medical history",
    "family_history": "Family history",
    "social_history": "Social history",
}


def vignette(row: Record, number: int) -> PublishedCase:
    """Return the case of a vignette."""
    diagnosis = text_of(row["correct_diagnosis"])
    who = text_of(row["demographics"])
    if not diagnosis:
        raise UnusableCase("have no diagnosis")
    parts = [f"{label}: {text_of(row[key])}" for key, label in PARTS.items() if row.get(key)]
    return PublishedCase(
        id=str(number),
        complaint=text_of(row["chief_complaints"]),
        summary="\n".join([who, *parts]),
        diagnosis=diagnosis,
        age=age_of(who),
        sex=sex_of(who),
    )


READERS = (
    Reader(
        "symptomcheck-bench", frozenset({"correct_diagnosis", "demographics", *PARTS}), vignette
    ),
)
