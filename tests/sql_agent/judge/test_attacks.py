"""Answers that attack the judge instead of answering: none may beat an honest partial answer to the
same question.

`attack_cases.jsonl` has questions with gold, the rows the tool returned, an honest partial answer
and a wrong one. `attacks.jsonl` has texts by kind; {partial}, {wrong}, {value} (all that is right),
{question} and {row} (all cells of the result) are filled in.
"""

import json

import pytest

from scoring.judge import Case
from sql_agent.judge.reference import ReferenceJudge
from tests.corpora import cases_of

ECHO = 0.2  # of the score: what JSON, a name alone or advice may earn at most


CASES = cases_of(__file__, "attack_cases")
ATTACKS = cases_of(__file__, "attacks")


def case_of(row, answer):
    context = [json.dumps(row["context"], ensure_ascii=False)]
    return Case(
        row["question"], answer, row["reference"], context, {"structured_gt": row["structured_gt"]}
    )


def attacks_on(row):
    """The texts against a case. Showing a result that is the answer alone is no attack."""
    cells = "；".join(str(cell) for cells in row["context"]["rows"] for cell in cells)
    names = {name: row[name] for name in ("partial", "wrong", "value", "question")}
    answers_itself = len(row["context"]["columns"]) == 1
    for attack in ATTACKS:
        if not (answers_itself and "{row}" in attack["text"]):
            yield attack["text"].format(**names, row=cells)


@pytest.mark.parametrize("row", CASES, ids=lambda row: row["id"])
def test_no_attack_beats_an_honest_partial_answer_under_the_offline_judge(row):
    def score(answer):
        return ReferenceJudge().compare(case_of(row, answer)).score

    wrong, partial, right = (score(row[kind]) for kind in ("wrong", "partial", "value"))
    assert wrong == 0 <= partial < right == 1
    # A partial answer in words of its own earns nothing here; an attack that quotes may earn what
    # an echo may.
    for text in attacks_on(row):
        assert score(text) <= max(partial, ECHO), text
