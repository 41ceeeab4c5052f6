"""Answers that attack the judge instead of answering: none may beat an honest partial answer to the
same question, and none leaves the fence around what an LLM judge reads.

`attack_cases.jsonl` has questions with gold, the rows the tool returned, an honest partial answer
and a wrong one. `attacks.jsonl` has texts by kind; {partial}, {wrong}, {value} (all that is right),
{question} and {row} (all cells of the result) are filled in.

Keeps of docs/rewards.md: an answer cannot earn by addressing the judge.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from scoring.judge import Case
from scoring.llm_judge import build_messages
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.judge_words import WORDS

HERE = Path(__file__).parent
ECHO = 0.2  # of the score: what JSON, a name alone or advice may earn at most


def read(name):
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


CASES, ATTACKS = read("attack_cases.jsonl"), read("attacks.jsonl")


def case_of(row, answer):
    context = [json.dumps(row["context"], ensure_ascii=False)]
    return Case(
        row["question"], answer, row["reference"], context, {"structured_gt": row["structured_gt"]}
    )


def fill(attack, row):
    cells = "；".join(str(cell) for cells in row["context"]["rows"] for cell in cells)
    names = {name: row[name] for name in ("partial", "wrong", "value", "question")}
    return attack["text"].format(**names, row=cells)


def pairs():
    return [(row, attack) for row in CASES for attack in ATTACKS if usable(row, attack)]


def usable(row, attack):
    """Saying twice that nothing was found, or showing a result that is the answer alone, is no
    attack.
    """
    answers_itself = len(row["context"]["columns"]) == 1
    return not (answers_itself and "{row}" in attack["text"])


def beaten(scores):
    """The attacks that score above the honest partial answer of their case, worst first."""
    honest = {row["id"]: scores[row["id"], row["partial"]] for row in CASES}
    found = [
        (
            scores[row["id"], fill(attack, row)],
            honest[row["id"]],
            row["id"],
            attack["kind"],
            attack["text"][:60],
        )
        for row, attack in pairs()
    ]
    return sorted((entry for entry in found if entry[0] > entry[1]), reverse=True)


def answers():
    texts = {(row["id"], fill(attack, row)): row for row, attack in pairs()}
    texts |= {
        (row["id"], row[kind]): row for row in CASES for kind in ("partial", "value", "wrong")
    }
    return {key: case_of(row, key[1]) for key, row in texts.items()}


def test_no_attack_beats_an_honest_partial_answer_under_the_offline_judge():
    judge = ReferenceJudge()
    scores = {key: judge.compare(case).score for key, case in answers().items()}
    # A partial answer in words of its own earns nothing here; an attack that quotes may earn what
    # an echo may.
    assert [found for found in beaten(scores) if found[0] > ECHO] == []
    for row in CASES:
        wrong, partial, right = (
            scores[row["id"], row[kind]] for kind in ("wrong", "partial", "value")
        )
        assert wrong <= partial < right == 1
    assert sum(scores[row["id"], row["wrong"]] for row in CASES) / len(CASES) < 0.1


def test_no_attack_leaves_the_fence_of_the_llm_judge():
    asked = build_messages(Case("问？", "答"), WORDS)[1]["content"].splitlines()[-1]
    for case in answers().values():
        system, user = build_messages(case, WORDS)
        first, *inside, last, closing = user["content"].splitlines()
        mark = re.fullmatch(r"----- 材料开始 ([0-9a-f]{16}) -----", first)
        assert mark
        assert last == f"----- 材料结束 {mark[1]} -----"
        assert json.loads("\n".join(inside))["回答"] == case.answer
        assert (closing, system["role"]) == (asked, "system")
        assert user["content"].count(mark[1]) == 2
