"""Answers that attack the judge instead of answering: none may beat an honest partial answer to the
same question, and none leaves the fence around what an LLM judge reads.

`attack_cases.jsonl` has questions with gold, the rows the tool returned, an honest partial answer
and a wrong one. `attacks.jsonl` has texts by kind; {partial}, {wrong}, {value} (all that is right),
{question} and {row} (all cells of the result) are filled in.
"""

import json
import re

import pytest

from scoring.judge import Case
from scoring.llm_judge import build_messages
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.judge_words import WORDS
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


@pytest.mark.parametrize("row", CASES, ids=lambda row: row["id"])
def test_no_attack_leaves_the_fence_of_the_llm_judge(row):
    asked = build_messages(Case("问？", "答"), WORDS)[1]["content"].splitlines()[-1]
    for text in attacks_on(row):
        system, user = build_messages(case_of(row, text), WORDS)
        first, *inside, last, closing = user["content"].splitlines()
        mark = re.fullmatch(r"----- 材料开始 ([0-9a-f]{16}) -----", first)
        assert mark
        assert last == f"----- 材料结束 {mark[1]} -----"
        assert json.loads("\n".join(inside))["回答"] == text
        assert (closing, system["role"]) == (asked, "system")
        assert user["content"].count(mark[1]) == 2
