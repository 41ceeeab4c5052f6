"""A judge for tests, and the score of the offline one."""

from itertools import chain
from typing import Any

from scoring.case import Case, Verdict
from sql_agent.judge.reference import ReferenceJudge


def worth(question: str, answer: str, reference: str = "", rows: Any = None) -> float:
    """Return the offline judge's score of an answer. rows: the gold query's result, if any."""
    rows = rows or []
    columns = [*dict.fromkeys(chain(*rows))]
    cells = [[row.get(column) for column in columns] for row in rows]
    gold = {"structured_gt": {"columns": columns, "rows": cells}} if cells else None
    score = ReferenceJudge().compare(Case(question, answer, reference, gold=gold)).score
    assert score is not None, question
    return score


class Fixed:
    """Always says the same, and keeps what it was asked."""

    name = "fixed"

    def __init__(self, verdict: Verdict) -> None:
        self.verdict, self.asked = verdict, list[Case]()

    async def judge(self, case: Case) -> Verdict:
        self.asked.append(case)
        return self.verdict
