"""What a reply says after its thought, for agents and judges alike."""

import pytest

from common.thoughts import after_thought
from tests.corpora import cases_of


@pytest.mark.parametrize(("reply", "said"), cases_of(__file__, "thoughts"))
def test_a_thought_is_not_what_a_reply_says(reply, said):
    assert after_thought(reply) == said


@pytest.mark.parametrize(("begin", "end"), cases_of(__file__, "thought_tags"))
def test_other_families_think_in_tags_of_their_own(begin, end):
    thought = f"{begin}I may use <think> here.{end}"
    assert after_thought(f"{thought}密封保存") == "密封保存"
    assert after_thought(f"密封保存\n{thought}") == "密封保存"
    assert after_thought(f"a\n{end}\n密封保存") == "密封保存"
    assert after_thought(f"{begin}It never ends") is None


def test_channels_of_gpt_oss_are_told_apart():
    thought = "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
    assert after_thought(f"{thought}<|channel|>final<|message|>密封保存<|return|>") == "密封保存"
    assert after_thought("<|channel|>analysis<|message|>a") is None


def test_what_is_left_of_a_reply_may_name_the_tag():
    """An answer that did was cut there: the loop took the thought out, and the agent did again."""
    said = after_thought("<think>a</think>The tag </think> ends a thought.")
    assert said == after_thought(said, opened=False) == "The tag </think> ends a thought."


def test_a_reply_of_many_thoughts_is_read_in_a_time_that_grows_with_it():
    """It took minutes in which no other episode went on, and a policy may write it."""
    assert after_thought("<think>a</think>\n" * 30_000 + "密封保存") == "密封保存"
