"""One row of the consultation agent's data as a frozen type (docs/consultation.md has its columns)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conditions.published import (
    AGENTCLINIC,
    MEDIQ,
    SYMPTOMCHECK,
    PublishedCase,
    right_letters,
    sex_in,
)
from conditions.table import load_tables
from episodes.agent import Row
from episodes.episode import AgentError, Task

PUBLISHED = (*AGENTCLINIC, SYMPTOMCHECK, MEDIQ)
PREFIX = "Patient's description:"  # how the reference's prompts begin what the patient says


@dataclass(frozen=True, kw_only=True)
class ConsultationTask(Task):
    """A patient. `question` is the complaint, `reference` the gold diagnosis, or the letters of the
    right options as "A" or "A, C".

    names: what the diagnosis may be called, if known. advice: the gold advice by item, with
    *terms*. words: what the patient says of a facet or symptom. values: the meaning of these words,
    in the tables' names. symptoms: whether each is there; one not named is not. distinguishing:
    what should be asked for. exchanges: earlier questions and answers. options: answers by letter.
    """

    recommendation: str = ""
    condition: str = ""
    complaint: str = ""
    names: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    age: int | None = None
    sex: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    symptoms: Mapping[str, bool] = field(default_factory=dict)
    distinguishing: tuple[str, ...] = ()
    exchanges: tuple[tuple[str, str], ...] = ()
    description: str = ""
    english: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def opening(self) -> str:
        """The patient's first words: "" with options, where `question` is the examiner's."""
        return "" if self.options else self.question


def row_of(case: PublishedCase, source: str) -> Row:
    """Return a case of a public test set as a row. Its patient knows the summary, not the findings."""
    truth = {"diagnosis": case.right or case.diagnosis, "recommendation": ""}
    listed = [f"{letter}: {text}" for letter, text in case.options.items()]
    if ", " in case.right:
        listed.append("Several options are right. Choose all of them.")
    return {
        "id": case.id,
        "task_type": case.kind,
        "prompt": [
            {"role": "user", "content": "\n".join([case.complaint, case.question, *listed]).strip()}
        ],
        "reward_model": {"ground_truth": truth, "enhanced_description": case.summary},
        "extra_info": {
            "department": case.kind,
            "age": case.age,
            "sex": case.sex,
            "english": True,
            "options": json.dumps(dict(case.options)),
        },
    }


def task_of(row: Row) -> ConsultationTask:
    """Check a row. Raises AgentError: a column or condition is missing, or of another form."""
    try:
        model = row["reward_model"]
        extra = row.get("extra_info") or {}
        truth = model["ground_truth"]
        options: dict[str, str] = json.loads(extra.get("options") or "{}")
        named = truth["diagnosis"]
        right = right_letters(named, options) if options else _filled(named)
        condition = load_tables().conditions[extra["condition"]] if extra.get("condition") else None
        values = _texts(extra.get("values"))
        exchanges = []
        for once in model.get("patient_information") or ():
            question = _joined(once["doctor_question"])
            exchanges.append((question, _joined(once["patient_response"])))
        asked = (message["content"] for message in row["prompt"] if message["role"] == "user")
        said = _filled(next(asked, None))
        if said.startswith(PREFIX):
            said = said.removeprefix(PREFIX).strip().splitlines()[0]
        return ConsultationTask(
            id=str(row["id"]),
            question=said,
            reference=right,
            recommendation=_text(truth["recommendation"]),
            task_type=extra.get("department") or "unknown",
            difficulty=extra.get("difficulty") or "unknown",
            wording=extra.get("wording") or "",
            condition=extra.get("condition") or "",
            complaint=extra.get("complaint") or "",
            names=(condition.zh, condition.en, *condition.aliases_zh, *condition.aliases_en)
            if condition
            else (),
            advice=condition.advice_for(values.get("habits")) if condition else (),
            age=None if extra.get("age") is None else int(extra["age"]),
            sex=sex_in(extra) or "",
            values=values,
            words=_texts(extra.get("facets")),
            symptoms=json.loads(extra.get("symptoms") or "{}"),
            distinguishing=tuple(extra.get("distinguishing") or ()),
            exchanges=tuple(exchanges),
            description=_text(model.get("enhanced_description") or ""),
            english=bool(extra.get("english")),
            options=options,
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        seen = f"{type(error).__name__}: {error}"
        raise AgentError(
            f"row {row.get('id')!r} is no consultation ({seen}); "
            "expected prompt, reward_model.ground_truth and extra_info "
            "as in data/consultation, or DoctorAgent-RL's columns"
        ) from None


def _texts(table: str | None) -> dict[str, str]:
    return {name: _text(value) for name, value in json.loads(table or "{}").items()}


def _joined(texts: Any) -> str:
    return texts if isinstance(texts, str) else " ".join(texts)


def _filled(value: Any) -> str:
    if not _text(value).strip():
        raise ValueError(f"expected words, got {value!r}")
    return str(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {str(value)[:60]!r}")
    return value
