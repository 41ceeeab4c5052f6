"""What an LLM judge is asked about a case: three questions with exact answers (judge_words.toml).

A Case's `context` are the examinations ordered, `gold` has those recommended and the number of orders.
"""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from common.toml import table_beside
from conditions.diagnosis import LONGEST
from scoring.case import Case
from scoring.llm_judge import JudgeWords

LONGEST_TEXT = 6_000  # characters of each text shown to the judge
CODE = re.compile(r"\[[A-Z]{1,3}\d{1,2}(?:\.\w{1,4})?\]")  # of ICD-10, or a stage
Count = Annotated[int, Field(strict=True, ge=0)]


class Answers(BaseModel):
    """The form of a reply; another word or number is none."""

    model_config = ConfigDict(extra="forbid")
    diagnosis: Literal["Correct", "Wrong"]
    recommended: Count
    covered: Count


class CaseWords(JudgeWords):
    """The words of this agent's judge."""

    reply = Answers

    def parts(self, case: Case, said: BaseModel) -> dict[str, float]:
        """Return diagnosis and examinations. Counts are cut to the number of examinations."""
        assert isinstance(said, Answers)
        gold = case.gold or {}
        recommended = min(said.recommended, len(case.context))
        covered = min(said.covered, len(gold["key"]))
        found = f1(recommended, gold["orders"], covered, len(gold["key"]))
        return {"diagnosis": float(said.diagnosis == "Correct"), "examinations": found}


def f1(recommended: int, orders: int, covered: int, key: int) -> float:
    """Return the F1 of the orders that were recommended and the recommended that were ordered."""
    precision = recommended / max(1, orders)
    recall = covered / max(1, key)
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


def addresses_the_judge(text: str) -> bool:
    """Return whether a text is more than a name: words to the judge, markup, too long."""
    beside = CLINICAL_SCORE.sub("", CODE.sub("", text))
    return len(text) > LONGEST or bool(ADDRESSES.search(beside))


def material(case: Case) -> dict[str, str | None]:
    """Return the texts that the judge reads, each cut to a length."""
    texts = {
        "case": case.question,
        "true diagnosis": case.reference,
        "recommended examinations": "\n".join((case.gold or {}).get("key", [])),
        "ordered examinations": "\n".join(case.context),
        "diagnosis made": case.answer,
    }
    return {name: text[:LONGEST_TEXT] or None for name, text in texts.items()}


_WORDS = table_beside(__file__)
RUBRIC_WORDS = _WORDS.pop("rubrics")
ADDRESSES = re.compile("|".join(_WORDS.pop("addresses")), re.IGNORECASE)
CLINICAL_SCORE = re.compile(
    rf"\b(?:{'|'.join(map(re.escape, _WORDS.pop('clinical_scores')))})(?:['’]s)? score(?: of)? \d+\b"
)
WORDS = CaseWords(**_WORDS | {"material": material, "known_case": Case(**_WORDS["known_case"])})
