"""What is known of common conditions: the five tables beside this file, read once."""

import re
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from common.toml import table_beside
from conditions.condition_types import Tables

FOLDER = Path(__file__).parent
NAMES = ("phrases", "wordings", "complaints", "examinations", "conditions")
# The system prompt of the rows of data/diagnosis, which is DiagAgent's
INSTRUCTION = (
    "You are a physician. Order one examination at a "
    "time; when you know enough, give the diagnosis."
)


@cache
def load_tables() -> Tables:
    """Return the tables. Raises pydantic's ValidationError: they have another form."""
    phrases, wordings, complaints, examinations, conditions = (
        table_beside(__file__, f"{name}.toml") for name in NAMES
    )
    for name, words in phrases.pop("asked").items():  # a separate table keeps lines short
        phrases["symptoms"][name]["ask"] = words
    for name, longer in wordings["symptoms"].items():
        phrases["symptoms"][name]["longer"] = longer
    for name, values in wordings["facets"].items():
        for value, longer in values.items():
            phrases["facets"][name]["values"][value]["longer"] = longer
    for condition in conditions["conditions"].values():
        findings = condition["examinations"]
        for name, finding in findings.items():
            if "mean" in finding:  # of an examination with a single number, which is not named
                [part] = examinations[name]["parts"]
                findings[name] = {part: finding}
    read = {**phrases, **conditions, "complaints": complaints, "examinations": examinations}
    return TypeAdapter(Tables).validate_python(read)


@cache
def chinese_pairs() -> frozenset[str]:
    """Return every two Chinese characters that stand side by side in the tables, without how patients
    talk at length.
    """
    names = [name for name in NAMES if name != "wordings"]
    texts = [(FOLDER / f"{name}.toml").read_text(encoding="utf-8") for name in names]
    return frozenset(re.findall(r"(?=([\u4e00-\u9fff]{2}))", "\n".join(texts).replace("*", "")))
