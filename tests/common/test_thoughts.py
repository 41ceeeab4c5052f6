"""What a reply says after its thought, for agents and judges alike."""

from __future__ import annotations

import pytest

from common.thoughts import after_thought


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("密封保存", "密封保存"),
        ("<think>The row says so.</think>\n密封保存", "密封保存"),
        ("<think>\n\n</think>\n\n密封保存", "密封保存"),
        ("The row says so.\n</think>\n\n密封保存", "密封保存"),  # the template opened it
        ("<think>I call <tool_call> again.</think>密封保存", "密封保存"),
        ("<THINK>a</think><think>b</think> 密封保存", "密封保存"),
        ("so <think>a</think> gout", "so <think>a</think> gout"),
        ("<answer>a</answer> </think>", "<answer>a</answer> </think>"),
        ("I write <answer>.</think>\n<answer>a</answer>", "<answer>a</answer>"),
        ("<think>a<think>b</think>\n</think>\ngout", "gout"),
        ("<think>I may use <think> again.</think> gout", "gout"),
        ('<think>a</think>{"code": "print(\'</think>\')"}', '{"code": "print(\'</think>\')"}'),
        ('{"code": "print(\'</think>\')"}', '{"code": "print(\'</think>\')"}'),
        (
            "<think>I may use <think> again.</think> The tag </think> ends it.",
            "The tag </think> ends it.",
        ),
        ("<think>\nI write </think> here.\n</think>\n\ngout", "gout"),
        ('{"rows": 1} is what I saw.\n</think>\n\ngout', "gout"),
        ("`drugs` has a column.\n</think>\n\ngout", "gout"),
        ("```\n<think>\na\n</think>\n```", "```\n<think>\na\n</think>\n```"),
        ("I may use <think> again.\n</think>\ngout", "gout"),
        ("<think>It never ends", None),
        ("", ""),
    ],
)
def test_a_thought_is_not_what_a_reply_says(reply: str, said: str | None) -> None:
    assert after_thought(reply) == said


def test_what_is_left_of_a_reply_may_name_the_tag() -> None:
    """An answer that did was cut there: the loop took the thought out, and the agent did again."""
    said = after_thought("<think>a</think>The tag </think> ends a thought.")
    assert said == after_thought(said, opened=False) == "The tag </think> ends a thought."
