"""What an episode earns: nothing before an answer, its worth and form after it, and counts."""

from dataclasses import replace

import pytest

from code_agent.protocol import Event
from code_agent.reward import RUBRIC, counters_of, facts_of, score, success
from episodes.episode import Episode

CODE = {"code": "print(3)"}
RAN = Event("validate_code", CODE, "code_execution", "SUCCESS", "3")
RAISED = Event("validate_code", {"code": "x"}, "code_execution", "FAILED", "NameError")
MALFORMED = Event("", kind="error", problem="no_action")
REFUSED = Event("submit", kind="error", problem="nothing_to_hand_in")
HANDED_IN = Event("submit", kind="submitted", worth=1.0)


def test_an_answer_is_paid_by_its_worth_and_the_form_of_its_replies():
    reward = score(Episode(answer="3", events=[RAISED, RAN, MALFORMED, HANDED_IN]))
    assert reward.terms == {"format": 0.05, "success": 0.9}
    assert reward.score == 1.0
    assert reward.unscored is None
    assert reward.total == pytest.approx(0.95)
    assert reward.counters == counters_of([RAISED, RAN, MALFORMED, HANDED_IN])
    wrong = score(Episode(answer="4", events=[RAN, replace(HANDED_IN, worth=0.0)]))
    assert (wrong.total, wrong.score) == (pytest.approx(0.1), 0.0)
    assert RUBRIC.highest == pytest.approx(1.0)


def test_without_an_answer_form_is_not_paid_either():
    """A policy would learn to run one program and stop."""
    reward = score(Episode(answer=None, events=[RAN, RAN]))
    assert (reward.total, reward.terms, reward.score) == (0.0, {"format": 0.0, "success": 0.0}, 0.0)


def test_the_worth_is_that_of_the_last_answer_that_was_handed_in():
    """An earlier worth would pay a right answer that was replaced."""
    events = [replace(HANDED_IN, worth=0.25), RAN, replace(HANDED_IN, worth=0.5), RAN]
    assert success(Episode(answer="4", events=events)) == 0.5
    assert success(Episode(answer=None, events=events)) == 0.0


def test_what_is_counted():
    assert counters_of([RAN, RAISED, RAN, MALFORMED, MALFORMED, REFUSED, RAN, HANDED_IN]) == {
        "runs": 4.0,
        "runs_raised": 1.0,
        "loops": 1.0,  # the same program three times
        "malformed": 2.0,
        "refused": 1.0,
        "validate_code": 4.0,
        "submit": 2.0,
    }
    assert counters_of([RAN, RAN])["loops"] == 0.0
    assert counters_of([MALFORMED, MALFORMED, MALFORMED])["loops"] == 0.0
    assert counters_of([]) == dict.fromkeys(
        ("runs", "runs_raised", "loops", "malformed", "refused"), 0.0
    )


def test_facts_are_numbers_of_the_episode():
    facts = facts_of(Episode(answer="4", events=[RAISED] * 3 + [RAN, HANDED_IN]))
    assert (facts["success"], facts["handed_in"], facts["steps"]) == (1.0, 1.0, 5.0)
    assert (facts["runs"], facts["raised"], facts["loops"]) == (4.0, 0.75, 1.0)
    assert facts_of(Episode())["raised"] is None, "nothing ran"
