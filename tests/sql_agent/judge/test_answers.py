"""What the offline judge pays of answers by people who had read no judge: quotes, and nothing that
is wrong.

A line of `answers_open.jsonl`, `answers_sealed.jsonl` and `answers_later.jsonl` (the third to sixth
set) is a question with its reference, gold and tool results, an answer of a kind, and what it is
worth; people wrote them who had read no judge. A line of `labels.jsonl` is one graded by the first
author before the judge was tuned; cases of a task type in the order of sha256(case) are held out
and tuned on in turn, and the answers to one question are never in both halves.
"""

from collections import defaultdict
from statistics import fmean

import pytest

from scoring.judge import Case
from sql_agent.judge.reference import ReferenceJudge
from tests.corpora import cases_of

# Of answers in words of their own only what is wrong has a bound; what is right in other words
# needs TEACHER_MODEL. Some of the "exact evidence" here are excerpts of a page, which earn their
# share.
AT_LEAST = {"exact_evidence": 0.94, "reference_itself": 0.99}
AT_MOST = {
    "json_echo": 0.2, "select_star": 0.2, "sprayed": 0.2, "name_alone": 0.05, "abstain_wrong": 0.0,
    "echo_question": 0.0, "injection": 0.05, "vague": 0.05, "other_value": 0.05, "other_drug": 0.05,
    "swapped_entities": 0.05, "wrong_numbers": 0.1, "wrong_unit": 0.1, "unit_temperature": 0.1, "negated": 0.05,
    "contradicted": 0.1, "swapped_roles": 0.15, "three_additions": 0.1, "count_with_invention": 0.2,
}  # fmt: skip


@pytest.fixture(scope="module", params=["open", "sealed", "later"])
def measured(request):
    """The scores of a set by kind of answer."""
    judge, found = ReferenceJudge(), defaultdict(list)
    for row in cases_of(__file__, f"answers_{request.param}"):
        context = row["context"] or []
        case = Case(row["question"], row["answer"], row["reference"], context, row["gold"])
        found[row["kind"]].append(judge.compare(case).score)
    return found


def test_what_is_quoted_is_paid(measured):
    means = {kind: fmean(measured[kind]) for kind in AT_LEAST if measured[kind]}
    assert {kind: mean for kind, mean in means.items() if mean < AT_LEAST[kind]} == {}


def test_wrong_answers_of_each_kind_score_low(measured):
    means = {kind: fmean(measured[kind]) for kind in AT_MOST if measured[kind]}
    assert {kind: mean for kind, mean in means.items() if mean > AT_MOST[kind]} == {}
    paid = [kind for kind in AT_MOST for score in measured[kind] if score >= 0.5]
    assert len(paid) <= 0.01 * sum(len(measured[kind]) for kind in AT_MOST), paid


def test_no_wrong_answer_is_paid_and_every_quote_is():
    judge = ReferenceJudge()
    scores = defaultdict(list)
    for row in cases_of(__file__, "labels"):
        gold = {"structured_gt": row["structured_gt"], "evidence": row["evidence"]}
        case = Case(row["question"], row["answer"], row["reference"], [], gold)
        scores[row["label"], row["kind"]].append(judge.compare(case).score)
    wrong = [of for (label, _), of in scores.items() if label in ("wrong", "evasive")]
    assert sum(score >= 0.5 for of in wrong for score in of) == 0
    assert fmean(scores["right", "quote"]) >= 0.9
