"""What an LLM judge reads: nothing leaves the fence; what it replies: the four scores or nothing."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.llm.client import parse_reply
from scoring.judge import Case
from scoring.llm_judge import build_messages
from sql_agent.judge_words import LONGEST_ANSWER, WORDS
from tests.corpora import cases_of
from tests.scoring.judge_servers import CASE, SCORES

# Tags, selectors of variants, fillers, joiners, signs of direction: drawn often, for
# st.characters() hardly ever does.
UNSEEN = [
    *map(chr, range(0xE0000, 0xE0080)),
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
    *"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u180f\u200b\u200d\u202e\u2060\u2066\u3164\ufeff\uffa0",
    *"\ufff9\U0001bca0\U0001d173\ue000\ud800",
]


def test_material_cannot_leave_its_fence():
    user = build_messages(CASE, WORDS)[1]
    again = build_messages(CASE, WORDS)[1]
    assert "<" not in user["content"]
    assert user["content"] != again["content"]
    first, *lines, last, _ = user["content"].splitlines()
    mark = first.split()[2]
    assert mark in last
    assert mark not in again["content"]
    assert len(mark) == 16
    told = {"问题": CASE.question, "参考答案": CASE.reference, "回答": CASE.answer}
    data = {"数据库依据": '{"evidence": []}', "工具返回的数据": CASE.context[0]}
    assert json.loads("\n".join(lines)) == {**told, **data}


def test_endless_answers_are_cut():
    endless = "长" * 100_000
    case = Case(endless, endless, endless, [endless], {"evidence": [{"quote": endless}]})
    content = build_messages(case, WORDS)[1]["content"]
    assert LONGEST_ANSWER < len(content) < 30_000


GOOD = json.dumps(SCORES)
OTHER = json.dumps(dict.fromkeys(SCORES, 1.0))


@pytest.mark.parametrize("text", cases_of(__file__, "scores_read"))
def test_scores_are_read(text):
    assert parse_reply(text, WORDS.reply).model_dump() == SCORES


@pytest.mark.parametrize("text", [*cases_of(__file__, "malformed_scores"), "[" * 100_000])
def test_anything_else_is_malformed(text):
    with pytest.raises(ValueError, match="Scores"):
        parse_reply(text, WORDS.reply)


def unseen(char):
    return char in UNSEEN or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


SIGNS = st.characters(exclude_categories=["Cs"]) | st.sampled_from(UNSEEN)


@given(st.text(SIGNS, max_size=50))
def test_nothing_that_is_not_seen_reaches_the_judge(answer):
    content = build_messages(Case("q", answer, "r"), WORDS)[1]["content"]
    assert [char for char in content if unseen(char) and char != "\n"] == []
    lines = content.splitlines()
    assert json.loads("\n".join(lines[1:-2]))["回答"] == answer
