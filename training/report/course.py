"""Compare the last steps of a run with its first ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, variance
from typing import Any

from common.language import said

STEPS = 10  # of each end of the run
ERRORS = 2  # standard errors between the two means, by which a run counts as worse
LEAST = 0.01  # of the reward, if its steps do not vary
REWARD = "episodes/reward/mean"
ROLLOUTS = "episodes/rollouts"
CUT = "episodes/stop_reasons/length"


def course_of(steps: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return what a run's metrics say of both its ends, {} of a run that is too short.

    steps: the metrics of each step. reward: means of the first and the last steps. cut: shares of
    episodes whose last reply was cut. worse: the reward fell by more than its noise from step to
    step.
    """
    scored = [step for step in steps if REWARD in step]
    if len(scored) < 2 * STEPS:
        return {}
    means = []
    variances = []
    cut = []
    for end in (scored[:STEPS], scored[-STEPS:]):
        rewards = [step[REWARD] for step in end]
        means.append(fmean(rewards))
        variances.append(variance(rewards))
        cut.append(sum(step.get(CUT, 0) for step in end) / sum(step[ROLLOUTS] for step in end))
    error = sqrt(sum(variances) / STEPS)
    worse = means[0] - means[1] > max(LEAST, ERRORS * error)
    return {"reward": means, "cut": cut, "worse": worse}


def told(course: Mapping[str, Any]) -> str:
    """Return the comparison as a person reads it."""
    first, last = course["reward"]
    cut_first, cut_last = course["cut"]
    text = said("reward {first:.3f} -> {last:.3f}", first=first, last=last)
    if cut_first or cut_last:
        cut = ", replies cut {first:.1%} -> {last:.1%}"
        text += said(cut, first=cut_first, last=cut_last)
    if course["worse"]:
        text += said("; the run got worse: try a lower learning rate, or an earlier checkpoint")
    return text
