"""How episodes end and why some have no score: the one list of both, for every agent and every room.

An episode ends with a stop reason, which is the policy's doing and is scored, or leaves no score under a cause, which
is the machine's. docs/evaluation.md shows both tables; a test compares them.
"""

from __future__ import annotations

STOP_REASONS = {
    "answered": "the policy gave its answer",
    "no_answer": "an empty reply",
    "length": "the last reply was cut by its token limit; the answer is what there is",
    "bad_tool_call": "an unknown tool, or arguments that are not what the tool takes",
    "bad_reply": "a reply that is none of the protocol's forms where only an answer was left",
    "max_turns": "the budget was spent without an answer",
    "context_overflow": "the conversation no longer fits the model's context",
    "failed": "the machine failed first; unscored",
}

UNSCORED = {
    "timeout": "no end within EPISODE_TIMEOUT",
    "endpoint_unreachable": "the policy's endpoint could not be reached",
    "endpoint_error": "the policy's endpoint failed or refused",
    "database_error": "the database is gone or failing",
    "no_reference": "the judge needs a gold answer and there is none",
    "judge_failed": "the judge answered with an error",
    "judge_timeout": "the judge did not answer within JUDGE_TIMEOUT",
    "judge_malformed": "the judge's reply was no verdict",
    "judge_unavailable": "the judge failed too often and is given a rest",
    "reward_missing": "the runner left no note of the episode",
    "no_calls": "the episode ended without a call of the policy",
    "spans_missing": "calls of the episode left no trace",
    "too_long": "a sequence exceeds the token budget",
    "alone_in_group": "no other scored episode of its group to compare with",
    "step_skipped": "its whole step was skipped",
    "rollout_failed": "the agent raised an error",
    "rollout_cancelled": "the store cancelled it",
    "rollout_timeout": "no end within the runner's deadline, three times",
    "rollout_unresponsive": "its runners died or fell silent, three times",
}


class EpisodeError(RuntimeError):
    """The machine failed, so the episode says nothing about the policy. `cause`: one of `UNSCORED`."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        if cause not in UNSCORED:
            raise ValueError(f"{cause!r} is no cause of episodes/outcomes.py")
        self.cause = cause


class PolicyStop(Exception):
    """The policy cannot go on. `reason`: one of `STOP_REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
