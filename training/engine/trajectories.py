"""Merge an episode's triplets into token sequences by their prefix.

If a prompt extends the previous prompt + response token for token, the calls are one sequence: mask
0 on what lies between, 1 on what the policy generated. Only token ids are compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    """One call of the policy: token ids, and the log-probability of each generated one, if asked."""

    prompt_ids: list[int]
    response_ids: list[int]
    log_probs: list[float] | None = None

    def __post_init__(self) -> None:
        if self.log_probs is not None and len(self.log_probs) != len(self.response_ids):
            raise ValueError(
                f"{len(self.log_probs)} log-probabilities for "
                f"{len(self.response_ids)} generated tokens"
            )


@dataclass(frozen=True)
class Limits:
    """How many tokens a sequence may have in its prompt, and in all that follows."""

    prompt: int
    response: int


@dataclass
class TokenSequence:
    """Prompt (L,), response (R,) and mask (R,), 1 on what the policy generated.

    `log_probs` (R,) are the engine's, 0.0 where the mask is 0. They are None if a call has none.
    """

    prompt_ids: list[int]
    response_ids: list[int]
    mask: list[int]
    log_probs: list[float] | None = None

    def extend(self, call: Call) -> None:
        """Append what came between (mask 0) and what the policy generated (mask 1)."""
        between = call.prompt_ids[len(self.prompt_ids) + len(self.response_ids) :]
        self.response_ids = self.response_ids + between + call.response_ids
        self.mask = self.mask + [0] * len(between) + [1] * len(call.response_ids)
        if self.log_probs is not None:
            new = call.log_probs
            self.log_probs = None if new is None else self.log_probs + [0.0] * len(between) + new


@dataclass
class Trajectory:
    """The sequences of one episode, and the reasons for every break between them."""

    sequences: list[TokenSequence] = field(default_factory=list)
    breaks: dict[str, int] = field(default_factory=dict)
    too_long: bool = False


def merge_calls(calls: Sequence[Call], limits: Limits, merge: bool = True) -> Trajectory:
    """Merge an episode's calls, in order, into as few sequences as their token ids allow.

    A merged sequence over `limits.response` is broken ("length"). A call that does not fit by
    itself makes the trajectory `too_long`: a part would be trained on the whole's reward.
    """
    trajectory = Trajectory()
    for call in calls:
        if (
            len(call.prompt_ids) > limits.prompt + limits.response
            or len(call.response_ids) > limits.response
        ):
            return Trajectory(breaks=trajectory.breaks, too_long=True)
        if trajectory.sequences:
            last = trajectory.sequences[-1]
            reason = _why_apart(last, call, limits) if merge else "not_merged"
            if reason is None:
                last.extend(call)
                continue
            trajectory.breaks[reason] = trajectory.breaks.get(reason, 0) + 1
        mask = [1] * len(call.response_ids)
        trajectory.sequences.append(
            TokenSequence(call.prompt_ids, call.response_ids, mask, call.log_probs)
        )
    return trajectory


def _why_apart(last: TokenSequence, call: Call, limits: Limits) -> str | None:
    held = last.prompt_ids + last.response_ids
    if call.prompt_ids[: len(held)] != held:
        return "prefix_mismatch"
    whole = len(call.prompt_ids) + len(call.response_ids)
    return "length" if whole - len(last.prompt_ids) > limits.response else None
