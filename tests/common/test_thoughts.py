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
        ("<think>It never ends", None),
        ("", ""),
    ],
)
def test_a_thought_is_not_what_a_reply_says(reply: str, said: str | None) -> None:
    assert after_thought(reply) == said
