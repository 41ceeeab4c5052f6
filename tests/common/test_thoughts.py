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
        ("so <think>a</think> gout", "so gout"),
        ("好的。<think>a</think>密封保存", "好的。密封保存"),
        ("好的。\n<think>\na\n</think>\n密封保存", "好的。\n密封保存"),
        ("密封保存\n<think>a</think>", "密封保存"),
        ("密封保存\n<think>It never ends", "密封保存"),
        ("<think>a</think>好的。\n<think>b</think>密封保存", "好的。\n密封保存"),
        ("\ufeff<think>a</think>密封保存", "密封保存"),
        ("It stands in `<think>a</think>`.", "It stands in `<think>a</think>`."),
        ('{"code": "print(\'<think>a</think>\')"}', '{"code": "print(\'<think>a</think>\')"}'),
        ('{"code": "1"}\n<think>a</think>', '{"code": "1"}'),
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


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("[THINK]", "[/THINK]"),
        ("<seed:think>", "</seed:think>"),
        ("<mm:think>\n", "\n</mm:think>\n"),
        ("<thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("◁think▷", "◁/think▷"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|channel>thought\n", "<channel|>"),
        ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ],
)
def test_other_families_think_in_tags_of_their_own(begin: str, end: str) -> None:
    thought = f"{begin}I may use <think> here.{end}"
    assert after_thought(f"{thought}密封保存") == "密封保存"
    assert after_thought(f"密封保存\n{thought}") == "密封保存"
    assert after_thought(f"a\n{end}\n密封保存") == "密封保存"
    assert after_thought(f"{begin}It never ends") is None


def test_channels_of_gpt_oss_are_told_apart() -> None:
    thought = "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
    assert after_thought(f"{thought}<|channel|>final<|message|>密封保存<|return|>") == "密封保存"
    assert after_thought("<|channel|>analysis<|message|>a") is None


def test_what_is_left_of_a_reply_may_name_the_tag() -> None:
    """An answer that did was cut there: the loop took the thought out, and the agent did again."""
    said = after_thought("<think>a</think>The tag </think> ends a thought.")
    assert said == after_thought(said, opened=False) == "The tag </think> ends a thought."
