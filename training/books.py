"""Is the learning signal right? Checks made before every update, in plain Python.

What verl is about to train on is compared with the books: the tokens generated, the sequences of every episode, and the
advantages GRPO must give for the rewards of the scored episodes. Used by `training.trainer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import mean, stdev

from training.records import RolloutRecord, rewards_by_group
from training.watch import RunStopped

GRPO_EPSILON = 1e-6  # verl's, core_algos.compute_grpo_outcome_advantage
TOLERANCE = 1e-4  # of a reward; verl counts in 32 bit


def check_episodes(books: list[RolloutRecord], keys: Iterable[str], trained_tokens: int) -> dict[str, float]:
    """Compare the batch (`keys` are `{group}_{session}_{i}`) with the books of its episodes; returns both as metrics.

    Raises:
        RunStopped: a token, a sequence or an unscored episode too many or too few.
    """
    generated = sum(record.generated_tokens for record in books)
    if trained_tokens != generated:
        raise RunStopped(f"{trained_tokens} tokens would be trained but the policy generated {generated}")
    sequences = Counter(session_of(key) for key in keys)
    for record in books:
        if sequences[record.key] != record.sequences:
            raise RunStopped(
                f"rollout {record.rollout_id} became {record.sequences} sequences but {sequences[record.key]} of them "
                "would be trained"
            )
        if record.cause is not None or record.reward is None:
            raise RunStopped(f"rollout {record.rollout_id} is unscored ({record.cause}) and would be trained")
    return {
        "books/episodes": len(books),
        "books/sequences": sequences.total(),
        "books/triplets": sum(record.triplets for record in books),
        "books/generated_tokens": generated,
        "books/trained_tokens": trained_tokens,
    }


def session_of(key: str) -> str:
    """The episode a sequence's key belongs to."""
    return key.rsplit("_", 1)[0]


def learnable_groups(books: list[RolloutRecord]) -> int:
    """Prompt groups whose episodes earned different rewards: the others carry no gradient where groups are compared."""
    return sum(len(set(rewards)) > 1 for rewards in rewards_by_group(books).values())


def check_advantages(books: list[RolloutRecord], advantages: Mapping[str, float], normalised: bool) -> None:
    """Compare GRPO's advantages (by episode key) with (reward - mean) / (standard deviation + epsilon) of its group.

    Mean and deviation are of the group's scored episodes, one value an episode; `normalised` is verl's
    `norm_adv_by_std_in_grpo`. Formula: Shao et al. 2024 (DeepSeekMath), as verl computes it.

    Raises:
        RunStopped: an advantage is another, as it would be if an unscored episode had counted as 0.
    """
    groups = rewards_by_group(books)
    for record in books:
        rewards = groups[record.group]
        scale = stdev(rewards) + GRPO_EPSILON if normalised else 1.0
        found = advantages[record.key] * scale
        expected = (record.reward or 0.0) - mean(rewards)
        if abs(found - expected) > TOLERANCE:
            raise RunStopped(
                f"rollout {record.rollout_id} earned {record.reward} in a group of {rewards}; its advantage is "
                f"{advantages[record.key]:.4f} but should be {expected / scale:.4f}"
            )
