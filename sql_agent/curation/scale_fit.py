"""Fit a map to [0, 1] to raw scores, describe scores, and draw both. Used by
`utils/reward_scale.py`.

fit([-1.2, 0.3, 2.0, ...], "quantile").apply(0.3)
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy

from common.command import UsageError
from common.files import replacing
from scoring.scale import LogisticScale, QuantileScale, Scale

POINTS = 21  # of a quantile map: every five percent
LARGEST = 1e100
# Bins and steps of the picture
BINS = 40
STEPS = 200
FEWEST = 100  # scores; with fewer, five percent are less than five scores


def fit(scores: Sequence[float], kind: Literal["quantile", "logistic"]) -> Scale:
    """Return the map of that kind.

    Raises UsageError: fewer than two different scores, or some of an unusable size.
    """
    huge = [score for score in scores if abs(score) > LARGEST]
    if huge:
        raise UsageError(
            f"{len(huge)} scores are beyond {LARGEST:g}, "
            f"such as {huge[0]:g}; is the endpoint broken?"
        )
    if len(set(scores)) < 2:
        seen = f"all {len(scores)} are {scores[0]:g}" if scores else "there are none"
        raise UsageError(f"a map needs scores that differ, and {seen}")
    return fit_quantile(scores) if kind == "quantile" else fit_logistic(scores)


def fit_quantile(scores: Sequence[float]) -> QuantileScale:
    """Return POINTS quantiles of the scores, evenly from 0 to 1; equal ones become one point in the
    middle of their shares.

    A score that many answers get is so mapped to its mid-rank, as in rank statistics.
    """
    shares = numpy.linspace(0, 1, POINTS)
    raw, place = numpy.unique(numpy.quantile(scores, shares), return_inverse=True)
    return QuantileScale(
        raw=raw.tolist(), unit=(numpy.bincount(place, shares) / numpy.bincount(place)).tolist()
    )


def fit_logistic(scores: Sequence[float]) -> LogisticScale:
    """Return the logistic distribution with the median and quartiles of the scores, so that
    outliers do not matter.

    Its quartiles lie 2 ln 3 scales apart (Johnson, Kotz, Balakrishnan: Continuous Univariate
    Distributions 2, ch. 23). If half of the scores are equal the standard deviation is used, which
    is pi / sqrt(3) scales.
    """
    low, median, high = (float(numpy.quantile(scores, share)) for share in (0.25, 0.5, 0.75))
    scale = (high - low) / (2 * math.log(3)) or statistics.pstdev(scores) * math.sqrt(3) / math.pi
    if not scale > 0:
        raise UsageError(
            f"the scores differ by too little for a logistic map ({min(scores)} to {max(scores)})"
        )
    return LogisticScale(center=median, scale=scale)


def summary(scores: Sequence[float]) -> dict[str, float]:
    """Return key numbers of the scores, of which there must be two at least."""
    named = {
        "least": 0,
        "5 %": 0.05,
        "25 %": 0.25,
        "median": 0.5,
        "75 %": 0.75,
        "95 %": 0.95,
        "greatest": 1,
    }
    return {
        "mean": statistics.fmean(scores),
        "standard deviation": statistics.pstdev(scores),
        **{name: float(numpy.quantile(scores, share)) for name, share in named.items()},
        "share outside [0, 1]": sum(not 0 <= score <= 1 for score in scores) / len(scores),
    }


def draw(scores: Sequence[float], scale: Scale, title: str, path: Path) -> None:
    """Write a PNG of the scores before, the map and the scores after; it appears when it is
    complete.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    before, curve, after = figure.subplots(1, 3)
    figure.suptitle(f"{len(scores)} scores")
    before.hist(scores, bins=BINS, color="tab:gray")
    before.set(title="before", xlabel="raw score", ylabel="answers")
    raw = numpy.linspace(min(scores), max(scores), STEPS + 1).tolist()
    curve.plot(raw, [scale.apply(score) for score in raw], color="tab:blue")
    if isinstance(scale, QuantileScale):
        curve.plot(scale.raw, scale.unit, "o", color="tab:blue", markersize=3)
    curve.set(
        title=f"map: {scale.kind}", xlabel="raw score", ylabel="score in [0, 1]", ylim=(-0.02, 1.02)
    )
    after.hist([scale.apply(score) for score in scores], bins=BINS, range=(0, 1), color="tab:green")
    after.set(title="after", xlabel="score in [0, 1]", ylabel="answers")
    with replacing(path) as draft:
        figure.savefig(draft, dpi=120, metadata={"Title": title})
