"""What the offline judge pays of answers by people who had read no judge: quotes, and nothing that
is wrong.

A line of `answers_open.jsonl`, `answers_sealed.jsonl` and `answers_later.jsonl` (the third to sixth
set) is a question with its reference, gold and tool results, an answer of a kind, and what it is
worth; people wrote them who had read no judge. A line of `labels.jsonl` is one graded by the first
author before the judge was tuned; cases of a task type in the order of sha256(case) are held out
and tuned on in turn, and the answers to one question are never in both halves.

`number_forms.jsonl` has answers with a number, a short gold or a frame, and whether they are right.
`attack_cases.jsonl` has questions with gold, the rows the tool returned, an honest partial answer
and a wrong one; `attacks.jsonl` has texts into which {partial}, {wrong}, {value} (all that is
right), {question} and {row} (all cells of the result) are filled in.
"""

from collections import defaultdict
from statistics import fmean

import pytest

from scoring.judge import Case
from sql_agent.judge.fold import fold
from sql_agent.judge.reference import ReferenceJudge
from tests.corpora import cases_of
from tests.judges import worth

# What is right in other words needs TEACHER_MODEL, and has no bound here. Some of the "exact
# evidence" are excerpts of a page, which earn their share.
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
        case = Case(row["question"], row["answer"], row["reference"], gold=row["gold"])
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


ECHO = 0.2  # of the score: what JSON, a name alone or advice may earn at most


@pytest.mark.parametrize("row", cases_of(__file__, "attack_cases"), ids=lambda row: row["id"])
def test_no_attack_beats_an_honest_partial_answer(row):
    def score(answer):
        gold = {"structured_gt": row["structured_gt"]}
        case = Case(row["question"], answer, row["reference"], gold=gold)
        return ReferenceJudge().compare(case).score

    partial = score(row["partial"])
    assert score(row["wrong"]) == 0 <= partial < score(row["value"]) == 1
    # A partial answer in words of its own earns nothing here; an attack that quotes may earn what
    # an echo may. Showing a result that is the answer alone is no attack.
    cells = "；".join(str(cell) for cells in row["context"]["rows"] for cell in cells)
    names = {name: row[name] for name in ("partial", "wrong", "value", "question")}
    answers_itself = len(row["context"]["columns"]) == 1
    for attack in cases_of(__file__, "attacks"):
        if not (answers_itself and "{row}" in attack["text"]):
            text = attack["text"].format(**names, row=cells)
            assert score(text) <= max(partial, ECHO), text


@pytest.mark.parametrize("forms", cases_of(__file__, "same_numbers"), ids=lambda forms: forms[0])
def test_numbers_of_one_value_and_unit_are_one(forms):
    assert len({fold(form) for form in forms}) == 1, [fold(form) for form in forms]


@pytest.mark.parametrize(("one", "other"), cases_of(__file__, "other_numbers"))
def test_other_numbers_stay_other(one, other):
    assert fold(one) != fold(other)


# The share of the answers of a kind that the judge must pay, or must not pay, as their author says.
# Many right ones are in forms that it does not know: rates, fractions, comparisons, English.
AGREED = {
    "number_form": 0.43, "unit": 0.67, "short_gold": 0.92, "frame": 0.89, "number_wrong": 1.0, "short_wrong": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("kind", AGREED)
def test_answers_of_people_who_had_not_read_the_judge_are_paid_as_they_said(kind):
    agreed = []
    for row in cases_of(__file__, "number_forms"):
        if row["kind"] == kind:
            asked = {name: row[name] for name in ("question", "answer", "reference", "rows")}
            score = worth(**asked)
            agreed.append(score >= 0.95 if row["want"] == "right" else score < 0.5)
    assert fmean(agreed) >= AGREED[kind]
