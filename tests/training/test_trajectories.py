"""Merging an episode's calls: exactly the generated tokens are trained, whatever the calls look
like.

Keeps of README.md, "How data flows": the policy is trained on the tokens it generated, never on a
tool's or a prompt's.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.trajectories import Call, Limits, merge_calls

WIDE = Limits(prompt=10_000, response=10_000)
tokens = st.lists(st.integers(0, 5), max_size=8)
some_tokens = st.lists(st.integers(0, 5), min_size=1, max_size=8)


@st.composite
def episodes(draw: st.DrawFn) -> list[Call]:
    """Calls as a policy makes them: most prompts extend what came before, some do not (template,
    re-tokenisation).
    """
    calls: list[Call] = []
    context = draw(some_tokens)
    for _ in range(draw(st.integers(1, 6))):
        if (
            draw(st.integers(0, 9)) == 7
        ):  # 0 is drawn far more often than its share: hardly an episode would merge
            context = draw(some_tokens)
        response = draw(some_tokens)
        calls.append(Call(context, response, [-float(token) - 1 for token in response]))
        context = context + response + draw(tokens)
    return calls


@given(episodes(), st.booleans(), st.integers(4, 60))
def test_trained_tokens_are_the_generated_tokens_in_order(
    calls: list[Call], merge: bool, response: int
) -> None:
    limits = Limits(prompt=10_000, response=response)
    trajectory = merge_calls(calls, limits, merge)
    if trajectory.too_long:
        assert any(len(call.response_ids) > response for call in calls)
        assert not trajectory.sequences
        return
    trained = [
        token
        for sequence in trajectory.sequences
        for token, mask in zip(sequence.response_ids, sequence.mask, strict=True)
        if mask
    ]
    assert trained == [token for call in calls for token in call.response_ids]
    for sequence in trajectory.sequences:
        expected = [
            mask * (-float(token) - 1)
            for token, mask in zip(sequence.response_ids, sequence.mask, strict=True)
        ]
        assert sequence.log_probs == expected
    assert all(len(sequence.response_ids) <= response for sequence in trajectory.sequences)
    assert len(trajectory.sequences) == 1 + sum(trajectory.breaks.values())


@given(episodes())
def test_every_sequence_reads_as_the_engine_saw_it(calls: list[Call]) -> None:
    """Prompt + response of a sequence equals prompt + response of its last call: no token invented,
    moved or lost.
    """
    trajectory = merge_calls(calls, WIDE)
    whole = [call.prompt_ids + call.response_ids for call in calls]
    for sequence in trajectory.sequences:
        assert sequence.prompt_ids + sequence.response_ids in whole


@given(episodes())
def test_no_prompt_or_tool_token_is_trained(calls: list[Call]) -> None:
    """Give every generated token a number of its own, from 100 up: the mask must mark these and
    nothing else.
    """
    for sequence in merge_calls(_with_distinct_generated_tokens(calls), WIDE).sequences:
        assert sequence.mask == [int(token >= 100) for token in sequence.response_ids]


def _with_distinct_generated_tokens(calls: list[Call]) -> list[Call]:
    """An unbroken episode of the same lengths, with tool tokens (9) between its calls."""
    fresh: list[Call] = []
    context, counter = list(calls[0].prompt_ids), 100
    for number, call in enumerate(calls):
        response = list(range(counter, counter + len(call.response_ids)))
        counter += len(response)
        fresh.append(Call(context, response))
        context = context + response + [9] * (number % 3)
    return fresh


def test_a_changed_prefix_starts_a_new_sequence_and_is_counted() -> None:
    trajectory = merge_calls([Call([1, 2], [3]), Call([1, 7, 3], [4])], WIDE)
    assert [sequence.prompt_ids for sequence in trajectory.sequences] == [[1, 2], [1, 7, 3]]
    assert trajectory.breaks == {"prefix_mismatch": 1}
    calls = [Call([1], [2]), Call([5], [6]), Call([7], [8])]
    assert merge_calls(calls, WIDE).breaks == {"prefix_mismatch": 2}


@pytest.mark.parametrize(("between", "breaks"), [(0, {}), (1, {"length": 1})])
def test_a_merged_sequence_may_be_as_long_as_the_limit_and_no_token_longer(
    between: int, breaks: dict
) -> None:
    """One token over, and verl would cut the last one the policy generated off, or refuse the
    batch.
    """
    calls = [Call([1], [2, 2]), Call([1, 2, 2, *[9] * between], [3, 3])]
    trajectory = merge_calls(calls, Limits(prompt=8, response=4))
    assert trajectory.breaks == breaks
    assert max(len(sequence.response_ids) for sequence in trajectory.sequences) <= 4


@pytest.mark.parametrize(
    ("call", "too_long"),
    [
        (Call([1], [2] * 4), False),
        (Call([1], [2] * 5), True),
        (Call([1] * 12, [2]), False),
        (Call([1] * 13, [2]), True),
    ],
)
def test_a_call_over_the_limit_leaves_the_episode_out(call: Call, too_long: bool) -> None:
    trajectory = merge_calls([Call([1], [2]), call], Limits(prompt=8, response=4))
    assert trajectory.too_long == too_long
    assert bool(trajectory.sequences) != too_long


def test_log_probs_have_one_number_a_token_and_are_not_made_up() -> None:
    with pytest.raises(ValueError, match=r"1 .* 2"):
        Call([1], [2, 3], [-0.5])
    half_known = merge_calls([Call([1], [2], [-0.5]), Call([1, 2], [3])], WIDE)
    assert half_known.sequences[0].log_probs is None
