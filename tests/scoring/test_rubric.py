"""Rubrics to the number, raw scores to [0, 1], and that what is not scored has no total."""

import math

import pytest

from common.command import UsageError
from common.settings import SettingsError
from scoring.reward_model_judge import load_scale
from scoring.rubric import Reward, Rubric, parse_rubric
from tests.corpora import cases_of
from tests.messages import missing

KNOWN = ("rule", "judge", "format")


def test_a_value_is_paid_by_its_weight_and_what_its_factors_leave():
    rubric = parse_rubric(" rule = 0.1, judge=2.0*format*rule", KNOWN)
    assert rubric == Rubric({"rule": 0.1, "judge": 2.0}, {"judge": ["format", "rule"]})
    assert (rubric.highest, rubric.names) == (2.1, {"rule", "judge", "format"})
    paid = rubric.weigh({"rule": 0.5, "judge": 0.75, "format": 0.5})
    assert paid == {"rule": 0.05, "judge": 0.75 * 2.0 * 0.5 * 0.5}


def test_a_factor_without_a_value_takes_nothing_and_a_term_without_one_pays_nothing():
    rubric = parse_rubric("rule=0.1,judge=1.0*format", KNOWN)
    assert rubric.weigh({"judge": 0.5}) == {"judge": 0.5}
    assert rubric.weigh({"judge": 0.5, "format": 0.0}) == {"judge": 0.0}


@pytest.mark.parametrize(
    ("value", "refused"), [(0.0, False), (1.0, False), (-1e-9, True), (1 + 1e-9, True)]
)
def test_values_lie_in_0_to_1(value, refused):
    """A judge that gives 7 of 10 would teach more in one episode than the others in a step."""
    rubric = parse_rubric("rule=0.5", KNOWN)
    if refused:
        with pytest.raises(ValueError, match=str(value)):
            rubric.weigh({"rule": value})
    else:
        assert rubric.weigh({"rule": value}) == {"rule": value / 2}


@pytest.mark.parametrize(("text", "said"), cases_of(__file__, "no_rubrics"))
def test_what_is_no_rubric_is_said(text, said):
    with pytest.raises(UsageError) as caught:
        parse_rubric(text, KNOWN)
    assert not missing(str(caught.value), *said)


def test_a_reward_has_a_total_or_a_cause_and_never_both_or_neither():
    assert Reward(0.0, {}).unscored is None
    assert Reward(None, {}, "judge_failed").total is None
    for total, unscored in ((0.0, "judge_failed"), (None, None)):
        with pytest.raises(ValueError, match="total"):
            Reward(total, {}, unscored)


@pytest.mark.parametrize(
    ("total", "terms"),
    [(math.inf, {}), (math.nan, {}), (0.0, {"rule": math.nan}), (0.0, {"rule": -math.inf})],
)
def test_a_reward_is_finite(total, terms):
    with pytest.raises(ValueError, match="finite"):
        Reward(total, terms)
    with pytest.raises(ValueError, match="finite"):
        Reward(None, {"rule": math.nan}, "judge_failed")


def test_a_score_lies_in_its_bounds_and_terms_add_up_to_the_total():
    for score in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="score"):
            Reward(0.0, {}, score=score)
    with pytest.raises(ValueError, match="total"):
        Reward(1.0, {"rule": 0.1, "judge": 0.8})
    assert Reward(-0.4, {"right": 0.1, "turns": -0.5}, score=0.1).total == -0.4
    assert Reward(0.0, {"a": 0.1, "b": 0.2, "c": -0.3}).total == 0.0, "but for rounding"
    assert Reward(None, {"rule": 0.1}, "judge_failed").terms == {"rule": 0.1}


def test_what_an_answer_is_worth_is_what_is_paid_of_its_score():
    assert Reward(1.0, {}, score=0.5, factor=0.5).worth == 0.25
    assert Reward(1.0, {}, score=0.5).worth == 0.5
    unscored = Reward(None, {}, "judge_failed")
    assert not unscored.worth >= 0, "not scored reaches no bound, 0 included"


@pytest.mark.parametrize(("text", "named"), cases_of(__file__, "no_scale_files"))
def test_a_file_that_is_no_scale_is_refused_with_the_reason(tmp_path, text, named):
    path = tmp_path / "scale.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=named) as caught:
        load_scale(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "(: " not in str(caught.value)
