"""A picture of a reward scale: the scores before, the map, the scores after. Used by `utils/reward_scale.py`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scoring.scale import QuantileScale, Scale

BINS = 40
STEPS = 200


def draw(scores: Sequence[float], scale: Scale, title: str, path: Path) -> None:
    """Write a PNG; the file appears when it is complete."""
    import matplotlib

    matplotlib.use("Agg")  # no screen
    from matplotlib import pyplot

    figure, (before, curve, after) = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")
    figure.suptitle(f"{len(scores)} scores")
    before.hist(scores, bins=BINS, color="tab:gray")
    before.set(title="before", xlabel="raw score", ylabel="answers")
    low, high = min(scores), max(scores)
    raw = [low + (high - low) * step / STEPS for step in range(STEPS + 1)]
    curve.plot(raw, [scale.apply(score) for score in raw], color="tab:blue")
    if isinstance(scale, QuantileScale):
        curve.plot(scale.raw, scale.unit, "o", color="tab:blue", markersize=3)
    curve.set(title=f"map: {scale.kind}", xlabel="raw score", ylabel="score in [0, 1]", ylim=(-0.02, 1.02))
    after.hist([scale.apply(score) for score in scores], bins=BINS, range=(0, 1), color="tab:green")
    after.set(title="after", xlabel="score in [0, 1]", ylabel="answers")
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            figure.savefig(file, format="png", dpi=120, metadata={"Title": title})
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    finally:
        pyplot.close(figure)
