"""Which pairs can be learned from, counted by the reason why others cannot, and what their lengths
say.

    kept = usable(pairs, agent, length_pairs=False, left_out=left_out)
    longer_wins(kept)       # the share of pairs whose chosen side is the longer one
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from common.command import UsageError
from episodes.agent import Agent
from training.pairs.pair import LeftOut, Pair, Side


def usable(
    pairs: Iterable[Pair], agent: Agent, length_pairs: bool, left_out: LeftOut
) -> list[Pair]:
    """Return the pairs that can be learned from; `left_out` gets the others by reason.

    length_pairs: keep pairs of which one side is the other one and goes on.

    Raises UsageError: none is left.
    """
    tested = {str(row["id"]) for row in agent.rows(agent.splits["test"])}
    kept: dict[str, Pair] = {}
    for pair in pairs:
        reason = problem_of(pair, tested, length_pairs)
        key = repr((pair.chosen.messages, pair.rejected.messages))
        if reason is None and key in kept:
            reason = "there already"
        if reason:
            left_out[reason] += 1
        else:
            kept[key] = pair
    if not kept:
        raise UsageError(f"no pair is left to learn from: {counted(left_out) or 'there were none'}")
    return [*kept.values()]


def problem_of(pair: Pair, tested: set[str], length_pairs: bool) -> str | None:
    """Return why a pair cannot be learned from, or None. tested: ids of the agent's test tasks."""
    chosen, rejected = pair.chosen, pair.rejected
    texts = ["\n".join(side.replies) for side in (chosen, rejected)]
    shorter, longer = sorted((" ".join(text.split()) for text in texts), key=len)
    if pair.task in tested:
        return "task of the test file"
    if chosen.prompt != rejected.prompt:
        return "two different prompts"
    if not shorter:
        return "one side is empty"
    if None not in (chosen.score, rejected.score) and not _higher(chosen, rejected):
        return "the chosen side scores no higher"
    if shorter == longer:
        return "both sides are equal"
    if longer.startswith(shorter) and not length_pairs:
        return "they differ in length alone (--length-pairs keeps them)"
    return None


def _higher(chosen: Side, rejected: Side) -> bool:
    return (chosen.score or 0.0) > (rejected.score or 0.0)


def longer_wins(pairs: Sequence[Pair]) -> float | None:
    """Return the share of pairs whose chosen side is the longer one, of those of different length,
    counted in characters of the policy; None where all are equally long.
    """
    different = [pair for pair in pairs if pair.chosen.length != pair.rejected.length]
    won = sum(pair.chosen.length > pair.rejected.length for pair in different)
    return won / len(different) if different else None


def counted(left_out: LeftOut) -> str:
    """Return the reasons with their numbers in words, the commonest first."""
    return "; ".join(f"{reason}: {count}" for reason, count in left_out.most_common())
