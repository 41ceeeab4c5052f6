"""Exactly the generated tokens are trained, whatever the calls look like; and so they are kept."""

import pytest
from hypothesis import given
from hypothesis import settings as fuzzing
from hypothesis import strategies as st

from training.engine.kept_sample import pieces, stretches
from training.engine.trajectories import Call, Limits, TokenSequence, merge_calls

WIDE = Limits(prompt=10_000, response=10_000)
tokens = st.lists(st.integers(0, 5), max_size=8)
some_tokens = st.lists(st.integers(0, 5), min_size=1, max_size=8)


@st.composite
def episodes(draw: st.DrawFn) -> list[Call]:
    """Calls as a policy makes them: most prompts extend what came before, some do not."""
    calls: list[Call] = []
    context = draw(some_tokens)
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.integers(0, 9)) == 7:  # 0 is drawn more often: hardly an episode would merge
            context = draw(some_tokens)
        response = draw(some_tokens)
        calls.append(Call(context, response, [-float(token) - 1 for token in response]))
        context = context + response + draw(tokens)
    return calls


@given(episodes(), st.booleans(), st.integers(4, 60))
def test_trained_tokens_are_the_generated_tokens_in_order(calls, merge, response):
    limits = Limits(prompt=10_000, response=response)
    trajectory = merge_calls(calls, limits, merge)
    if trajectory.too_long:
        assert any(len(call.response_ids) > response for call in calls)
        assert not trajectory.sequences
        return
    trained = []
    for sequence in trajectory.sequences:
        marked = [*zip(sequence.response_ids, sequence.mask, strict=True)]
        trained += [token for token, mask in marked if mask]
        assert sequence.log_probs == [mask * (-float(token) - 1) for token, mask in marked]
        assert len(sequence.response_ids) <= response
    assert trained == [token for call in calls for token in call.response_ids]
    assert len(trajectory.sequences) == 1 + sum(trajectory.breaks.values())


@given(episodes())
def test_every_sequence_reads_as_the_engine_saw_it(calls):
    """A sequence is prompt and response of its last call: no token invented, moved or lost."""
    trajectory = merge_calls(calls, WIDE)
    whole = [call.prompt_ids + call.response_ids for call in calls]
    for sequence in trajectory.sequences:
        assert sequence.prompt_ids + sequence.response_ids in whole


def test_a_changed_prefix_starts_a_new_sequence_and_is_counted():
    trajectory = merge_calls([Call([1, 2], [3]), Call([1, 7, 3], [4])], WIDE)
    assert [sequence.prompt_ids for sequence in trajectory.sequences] == [[1, 2], [1, 7, 3]]
    assert trajectory.breaks == {"prefix_mismatch": 1}


LENGTHS = [(1, 4, False), (1, 5, True), (12, 1, False), (13, 1, True)]


@pytest.mark.parametrize(("between", "breaks"), [(0, {}), (1, {"length": 1})])
def test_a_merged_sequence_may_be_as_long_as_the_limit_and_no_token_longer(between, breaks):
    """One token over, and verl would cut the last one off, or refuse the batch."""
    calls = [Call([1], [2, 2]), Call([1, 2, 2, *[9] * between], [3, 3])]
    trajectory = merge_calls(calls, Limits(prompt=8, response=4))
    assert trajectory.breaks == breaks
    assert max(len(sequence.response_ids) for sequence in trajectory.sequences) <= 4


@pytest.mark.parametrize(("prompt", "reply", "too_long"), LENGTHS)
def test_a_call_over_the_limit_leaves_the_episode_out(prompt, reply, too_long):
    call = Call([1] * prompt, [2] * reply)
    trajectory = merge_calls([Call([1], [2]), call], Limits(prompt=8, response=4))
    assert trajectory.too_long == too_long
    assert bool(trajectory.sequences) != too_long


def test_log_probs_have_one_number_a_token_and_are_not_made_up():
    with pytest.raises(ValueError, match=r"1 .* 2"):
        Call([1], [2, 3], [-0.5])
    half_known = merge_calls([Call([1], [2], [-0.5]), Call([1, 2], [3])], WIDE)
    assert half_known.sequences[0].log_probs is None


SEQUENCE = TokenSequence([1, 2], [3, 4, 9, 5], [1, 1, 0, 1], [-0.5, -0.25, 0.0, -1.23456])


def letters(ids: list[int]) -> str:
    return "".join(chr(96 + number) for number in ids)


def utf8(ids: list[int]) -> str:
    """A tokenizer of bytes, each of which is a token."""
    return bytes(ids).decode("utf-8", "replace")


def test_stretches_are_trained_or_not_and_hold_every_token_once():
    found = stretches(SEQUENCE, letters)
    assert found == [
        {"trained": False, "ids": [1, 2], "texts": ["ab"]},
        {"trained": True, "ids": [3, 4], "texts": ["c", "d"], "log_probs": [-0.5, -0.25]},
        {"trained": False, "ids": [9], "texts": ["i"]},
        {"trained": True, "ids": [5], "texts": ["e"], "log_probs": [-1.2346]},
    ]


@fuzzing(max_examples=30)
@given(st.text(max_size=20))
def test_every_token_has_a_piece_of_the_text_though_a_character_has_several(text):
    ids = [*text.encode()]
    texts = pieces(ids, utf8)
    assert len(texts) == len(ids)
    assert "".join(texts) == text
