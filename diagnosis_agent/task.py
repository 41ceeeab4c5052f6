"""One row of the diagnosis agent's data as a frozen type (docs/diagnosis.md shows the columns)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conditions.published import AGENTCLINIC, SYMPTOMCHECK, PublishedCase, sex_in
from conditions.table import load_tables
from episodes.agent import Row
from episodes.episode import AgentError, Task

PUBLISHED = (*AGENTCLINIC, SYMPTOMCHECK)


@dataclass(frozen=True, kw_only=True)
class DiagnosisTask(Task):
    """A patient. `question` is the summary that the policy reads, `reference` the gold diagnosis.

    text: history and complaint for a simulator, without the diagnosis. aliases: its other names.
    results: by examination, as recorded, with reference ranges. key: the examinations recommended.
    optional: those neither paid nor charged. condition: its name in conditions. group: the
    complaint. age: in years. sex: "female" or "male". None: not known.
    """

    text: str
    aliases: tuple[str, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    condition: str | None = None
    group: str | None = None
    age: int | None = None
    sex: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the diagnosis may be called."""
        return (self.reference, *self.aliases)


def row_of(case: PublishedCase, source: str) -> Row:
    """Return a case of a public test set as a row. Every finding is an examination of its record."""
    findings = [{"name": name, "results": text} for name, text in case.findings.items()]
    known = {"age": case.age, "sex": case.sex}
    return {
        "id": case.id,
        "task_type": case.kind,
        "prompt": [{"role": "user", "content": case.summary}],
        "reward_model": {"ground_truth": case.diagnosis},
        "extra_info": {"source": source, "group": case.kind, "examinations": findings, **known},
    }


def task_of(row: Row) -> DiagnosisTask:
    """Check a row. Raises AgentError: a column is missing or of another form."""
    try:
        extra = row["extra_info"]
        known = {}
        for name in ("condition", "group"):
            if extra.get(name) is not None:
                known[name] = _text(name, extra[name])
        condition = load_tables().conditions[known["condition"]] if "condition" in known else None
        examinations = load_tables().examinations
        optional = tuple(examinations[name].en for name in condition.optional) if condition else ()
        key = _texts("key_exam_names", extra.get("key_exam_names"))
        asked = [turn["content"] for turn in row["prompt"] if turn["role"] == "user"]
        question = _text("prompt", asked[0] if asked else None)
        return DiagnosisTask(
            id=str(row["id"]),
            question=question,
            reference=_text("ground_truth", row["reward_model"]["ground_truth"]),
            text=_text("text", extra.get("text") or question),
            aliases=_texts("aliases", extra.get("aliases")),
            results=_results(_list("examinations", extra.get("examinations"))),
            key=tuple(name for name in key if name not in optional),
            optional=optional,
            condition=known.get("condition"),
            group=known.get("group"),
            sex=sex_in(extra),
            age=None if extra.get("age") is None else int(extra["age"]),
            task_type=known.get("group", "unknown"),
            difficulty=extra.get("difficulty") or "unknown",
            wording=extra.get("wording") or "",
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AgentError(
            f"row {row.get('id')!r} is no case ({type(error).__name__}: {error}); expected prompt, "
            "reward_model.ground_truth and extra_info as in data/diagnosis, or DiagAgent's columns"
        ) from None


def _results(examinations: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return results by name with their ranges, several under one name all kept."""
    found: dict[str, str] = {}
    for examination in examinations:
        name = _text("examinations.name", examination["name"])
        text = _text("examinations.results", examination["results"])
        usual = examination.get("reference_range")
        if usual:
            text = f"{text} (reference range: {_text('reference_range', usual)})"
        found[name] = f"{found[name]} | {text}" if name in found else text
    return found


def _texts(name: str, values: Any) -> tuple[str, ...]:
    return tuple(_text(name, value) for value in _list(name, values))


def _list(name: str, values: Any) -> Iterable[Any]:
    if isinstance(values, str | bytes | Mapping):
        raise TypeError(f"{name}: expected a list, got {str(values)[:60]!r}")
    return () if values is None else values


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{name}: expected text, got {str(value)[:60]!r}")
    return str(value)
