"""Print a run's progress from its folder's files as they grow."""

import time
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from math import nan
from pathlib import Path

from common.jsonl import NewLines, read_object
from common.language import said
from episodes.outcomes import counted
from training.engine.playing import FILE
from training.engine.records import validation_reward
from training.engine.watchdog import DIFFER, MISMATCH
from training.report.summary import (
    CUT,
    REWARD,
    ROLLOUTS,
    STEPS,
    course_of,
    measured,
    read_lines,
    read_timeline,
    told,
)
from training.setup.plan import MAX_UNSCORED_SHARE

SECONDS_A_LINE = 30.0  # inside a step; a shorter one is a line alone
MANY_CUT = 0.2  # of a step's episodes, where its line says so; a trained model cuts few


class Progress:
    """Prints what is new in a run's folder since the last look.

    steps: the last step. started: the program's start in Unix seconds.
    """

    def __init__(self, run_dir: Path, steps: int, started: float) -> None:
        self.run_dir = run_dir
        self.steps = steps
        self.started = started
        self._ready = False
        self._episodes = NewLines(run_dir / "episodes.jsonl")
        self._metrics = NewLines(run_dir / "metrics.jsonl")
        self._rows = [measured(row) for row in read_lines(run_dir / "metrics.jsonl")]
        self._worse = 0  # steps in a row after which the run had got worse; told once, at STEPS
        # Steps that ended since the start, and when the last one did
        self._ended = 0
        self._last_end = self.started
        self._playing = read_object(run_dir / FILE)
        self._said = self.started
        self._say(said("starting Ray, verl and vLLM"))

    def look(self) -> None:
        if not self._ready and "engine_ready" in read_timeline(self.run_dir):
            self._ready = True
            self._say(said("engine ready (Ray, verl, vLLM, proxy)"))
        episodes = [record for record in self._episodes.look() if record["mode"] == "train"]
        causes = Counter(record["cause"] for record in episodes if record["cause"])
        if causes.total() > MAX_UNSCORED_SHARE * len(episodes):
            named = counted(dict(causes.most_common()))
            left_out = "{count} of {of} episodes are left out: {named}"
            self._say(said(left_out, count=causes.total(), of=len(episodes), named=named))
        for row in self._metrics.look():
            data = measured(row)
            if "timing_s/step" in data:
                self._ended += 1
                self._last_end = time.time()
            line = said("step {step} of {steps}: ", step=row["step"], steps=self.steps)
            line += step_line(data)
            began = read_timeline(self.run_dir).get("first_step")
            if self._ended and began is not None and row["step"] < self.steps:
                left = (self.steps - row["step"]) * (self._last_end - began) / self._ended
                line += said(", about {time} left", time=timedelta(seconds=round(left)))
            self._say(line)
            self._rows.append(data)
            if REWARD in data and self._worse < STEPS:
                course = course_of(self._rows)
                self._worse = self._worse + 1 if course.get("worse") else 0
                if self._worse == STEPS:
                    self._say(told(course))
            self._playing = read_object(self.run_dir / FILE)
        playing = read_object(self.run_dir / FILE)
        if playing != self._playing and time.time() - self._said >= SECONDS_A_LINE:
            self._playing = playing
            text = "validation: {ended} of {of} episodes played"
            if playing["mode"] == "train":
                text = "step {step}: {ended} of {of} episodes played"
            self._say(said(text, **playing))

    def _say(self, text: str) -> None:
        self._said = time.time()
        print(f"[{self._said - self.started:5.0f} s] {text}", flush=True)


def step_line(data: Mapping[str, float]) -> str:
    """Return the metrics of a finished step that a person reads, in a line."""
    parts = []
    if REWARD in data:
        parts.append(said("reward {value:.3f}", value=data[REWARD]))
    if "books/trained_tokens" in data:
        parts.append(said("{count:.0f} episodes", count=data["books/episodes"]))
        parts.append(said("{count:.0f} tokens trained", count=data["books/trained_tokens"]))
    if data.get("episodes/unscored"):
        parts.append(said("{count:.0f} left out", count=data["episodes/unscored"]))
    if data.get(CUT, 0) > MANY_CUT * data.get(ROLLOUTS, 0):
        cut = "{count:.0f} of {of:.0f} replies cut at their limit (MAX_TOKENS)"
        parts.append(said(cut, count=data[CUT], of=data[ROLLOUTS]))
    if (validation := validation_reward(data)) is not None:
        parts.append(said("validation reward {value:.3f}", value=validation))
    if data.get(DIFFER):
        differ = "vLLM and trainer disagree ({name} {value:.2g})"
        parts.append(said(differ, name=MISMATCH, value=data.get(MISMATCH, nan)))
    if "timing_s/step" in data:
        parts.append(said("{seconds:.1f} s", seconds=data["timing_s/step"]))
    if data.get("books/learnable_groups") == 0:
        nothing = "every group has equal reward: nothing learned, weights left as they were"
        parts.append(said(nothing))
    elif data.get("episodes/equal_reward_groups"):
        equal = data["episodes/equal_reward_groups"]
        parts.append(said("groups with equal reward (no gradient): {count:.0f}", count=equal))
    return said(", ").join(parts)
