"""Failure policy: the one place that decides to skip a step or to stop the run.

docs/architecture.md has the table. Before every update, batch and records are compared.
"""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from statistics import mean, stdev

from episodes.agent import MOST_ACCEPTED
from episodes.outcomes import UNSCORED
from training.engine.records import RolloutRecord, by_agent, causes, rewards_by_group
from training.setup.plan import MAX_UNSCORED_SHARE, RunStopped

logger = logging.getLogger(__name__)

MAX_SKIPS_IN_A_ROW = 3
# After a skipped step, and twice that after a second: a judge may be down for a minute
PAUSE_SECONDS = 20.0
MISSING_SPANS_SHARE = 0.05
MISSING_SPANS_WINDOW = 200
MIN_SILENCE_SECONDS = 180.0
POLL_SECONDS = 0.5  # between two looks at the runner processes
# How often dead runners are started again, in how long
RESTARTS = 3
WINDOW_SECONDS = 600.0
REPEATS_SECONDS = 60.0  # a runner that ends sooner, as the one it replaced did, has the same cause
# Measured: below 1e-8 in 32 bit, 0.0022 with a real model in bfloat16 on both sides, 0.007 and
# growing where vLLM lacked the trained adapter.
MISMATCH_WARNS = 0.001
MISMATCH_WARNS_ROUNDED = 0.005  # where vLLM computes in 16 bit
CANARY_WINDOW = 200
# Rollouts of one agent in a window, from which it is judged by itself: fewer prove little
LEAST_OF_AN_AGENT = 16
CANARY_WARNS = 0.02
CANARY_STOPS = MOST_ACCEPTED
GRPO_EPSILON = 1e-6  # verl's, core_algos.compute_grpo_outcome_advantage
TOLERANCE = 1e-4  # of a reward of 1, and of larger ones a share. verl computes in 32 bit

MISMATCH = "rollout_corr/k3_kl"
DIFFER = "books/policies_differ"  # a step whose mismatch was warned of
SPANS_MISSING = "spans_missing"
REWARD_MISSING = "reward_missing"


class Watch:
    """Judges finished training rollouts over windows: what was played since the last update.

    Less than a step (groups that replace others) is not judged until earlier rollouts make it
    `step_size`.
    """

    def __init__(self, step_size: int, max_unscored_share: float = MAX_UNSCORED_SHARE) -> None:
        self.step_size = step_size
        self.skips = 0
        self.max_unscored_share = max_unscored_share
        self._window: list[RolloutRecord] = []
        self._since_update = 0
        self._recent: deque[bool] = deque(maxlen=MISSING_SPANS_WINDOW)
        self._canaries: dict[str, deque[bool]] = {}  # by agent, "" if only one is trained

    @property
    def pause(self) -> float:
        """Seconds to wait before the questions that come after a skipped step."""
        return PAUSE_SECONDS * self.skips

    def note_update(self) -> None:
        """Note that the policy is updated: rollouts that follow belong to another step."""
        self._since_update = 0

    def judge(self, records: list[RolloutRecord], validate: bool = False) -> str | None:
        """Return None to use new rollouts, or a reason to skip them. Raises RunStopped."""
        self._recent.extend(record.cause == SPANS_MISSING for record in records)
        full = len(self._recent) == MISSING_SPANS_WINDOW
        if full and sum(self._recent) > MISSING_SPANS_SHARE * MISSING_SPANS_WINDOW:
            raise RunStopped(
                f"spans missing: {sum(self._recent)} of the last {MISSING_SPANS_WINDOW} "
                "rollouts have fewer calls in the store than the policy answered. Is "
                "the store overloaded, or reached over a slow network?"
            )
        self._watch_canaries(records)
        if validate:
            return self._reason(records)
        self._since_update += len(records)
        longest = max(self.step_size, self._since_update)
        self._window = [*self._window, *records][-longest:]
        if len(self._window) < self.step_size:
            return None
        reason = self._reason(self._window)
        self.skips = self.skips + 1 if reason else 0
        if self.skips >= MAX_SKIPS_IN_A_ROW:
            raise RunStopped(
                f"{self.skips} steps in a row were skipped; the last because {reason}. "
                "Mend the cause (judge, tools, model server) and resume with --resume."
            )
        if reason:
            self._window = []
            self._since_update = 0
        return reason

    def _reason(self, window: list[RolloutRecord]) -> str | None:
        parts = {"": window}
        for name, own in by_agent(window).items():
            if len(own) >= LEAST_OF_AN_AGENT:
                parts[f" of {name}"] = own
        for whose, part in parts.items():
            if all(record.cause == REWARD_MISSING for record in part):
                raise RunStopped(
                    f"rewards missing: none of {len(part)} rollouts wrote an episode record. Look "
                    "for the runners' errors in the run's log; the store may not accept their "
                    "spans."
                )
            called = [record for record in part if record.turns]
            if called and not any(record.triplets for record in called):
                raise RunStopped(
                    f"zero triplets: {len(called)} rollouts called the policy and the store "
                    "holds no token ids of it. Usual causes: opentelemetry newer than 1.44, "
                    "litellm-enterprise missing, agents calling a model server past the "
                    "proxy. Run `.venv/bin/python -m utils.check_install`; see "
                    "docs/troubleshooting.md."
                )
            left_out = causes(part)
            share = left_out.total() / len(part)
            if share > self.max_unscored_share:
                ranked = left_out.most_common()
                counts = ", ".join(f"{name}: {count}" for name, count in ranked)
                first = ranked[0][0]
                meant = f"; {first} means: {UNSCORED[first]}" if first in UNSCORED else ""
                return f"{share:.0%} of {len(part)} rollouts{whose} are unscored ({counts}){meant}"
        return None

    def compare_log_probs(self, metrics: Mapping[str, float], dtype: str) -> bool:
        """Warn if vLLM, in `dtype`, sampled from another distribution than is trained."""
        mismatch = metrics.get(MISMATCH)
        most = MISMATCH_WARNS if dtype == "float32" else MISMATCH_WARNS_ROUNDED
        if mismatch is None or mismatch <= most:  # NaN is neither
            return False
        told = (
            "log-probabilities differ: %s is %.2g, over %g: the policy that plays is not the one "
            "that is trained (docs/training.md)"
        )
        logger.warning(told, MISMATCH, mismatch, most)
        return True

    def _watch_canaries(self, records: list[RolloutRecord]) -> None:
        for record in records:
            seen = self._canaries.setdefault(record.agent or "", deque(maxlen=CANARY_WINDOW))
            judged = record.canaries.get("judged", 0)
            accepted = record.canaries.get("accepted", 0)
            seen.extend([True] * accepted + [False] * (judged - accepted))
        for agent in {record.agent or "" for record in records}:
            window = self._canaries[agent]
            share = sum(window) / CANARY_WINDOW
            if len(window) < CANARY_WINDOW or share <= CANARY_WARNS:
                continue
            whose = f"the judge of {agent}" if agent else "the judge"
            fooled = (
                f"canaries accepted: {whose} took {share:.1%} of the "
                f"last {CANARY_WINDOW} known-bad answers for good"
            )
            if share > CANARY_STOPS:
                raise RunStopped(
                    f"{fooled}. A reward that can be had for nonsense teaches nonsense. "
                    "Choose a stronger judge, or fit its scale anew: see the agent's "
                    "settings, and docs/rewards.md. Then resume with --resume."
                )
            logger.warning("%s; over %.0f%% stop the run", fooled, 100 * CANARY_STOPS)


def silence_limit(episode_timeout: float) -> float:
    """Return the seconds without a finished rollout after which the run stops."""
    return max(MIN_SILENCE_SECONDS, 2 * episode_timeout)


def check_episodes(
    records: list[RolloutRecord], keys: Iterable[str], trained_tokens: int
) -> dict[str, float]:
    """Compare the batch (keys `{group}_{session}_{i}`) with the records, and return metrics.

    Raises RunStopped: a token, a sequence or an unscored episode too many or too few.
    """
    generated = sum(record.generated_tokens for record in records)
    if trained_tokens != generated:
        raise RunStopped(
            f"{trained_tokens} tokens would be trained but the policy generated {generated}"
        )
    sequences = Counter(session_of(key) for key in keys)
    for record in records:
        trained = sequences[record.key]
        if trained != record.sequences:
            raise RunStopped(
                f"rollout {record.rollout_id} became {record.sequences} sequences but {trained} of "
                "them would be trained"
            )
        if record.cause is not None or record.reward is None:
            raise RunStopped(
                f"rollout {record.rollout_id} is unscored ({record.cause}) and would be trained"
            )
    return {
        "books/episodes": len(records),
        "books/sequences": sequences.total(),
        "books/triplets": sum(record.triplets for record in records),
        "books/generated_tokens": generated,
        "books/trained_tokens": trained_tokens,
    }


def session_of(key: str) -> str:
    """Return the episode to which a sequence's key belongs."""
    return key.rsplit("_", 1)[0]


def learnable_groups(records: list[RolloutRecord]) -> int:
    """Return the number of groups with different rewards: others carry no gradient."""
    return sum(len(set(rewards)) > 1 for rewards in rewards_by_group(records).values())


def check_advantages(
    records: list[RolloutRecord], advantages: Mapping[str, float], normalised: bool
) -> None:
    """Compare GRPO's advantages with (reward - mean) / (deviation + epsilon) of each group.

    Only scored episodes count, one value each (Shao et al. 2024, as verl computes it). Raises
    RunStopped: one differs, as if an unscored episode had counted as 0.
    """
    groups = rewards_by_group(records)
    for record in records:
        rewards = groups[record.group]
        scale = stdev(rewards) + GRPO_EPSILON if normalised else 1.0
        found = advantages[record.key] * scale
        expected = (record.reward or 0.0) - mean(rewards)
        largest = max(abs(reward) for reward in rewards)
        if abs(found - expected) > TOLERANCE * max(1.0, largest):
            raise RunStopped(
                f"rollout {record.rollout_id} earned {record.reward} in a group of {rewards}; its "
                f"advantage is {advantages[record.key]:.4f} but should be {expected / scale:.4f}"
            )
