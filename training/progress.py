"""What a run shows while it works: one line an event, read from the run folder's files."""

from __future__ import annotations

import json
import time
from pathlib import Path

from training.summary import read_lines
from training.watch import MISMATCH, MISMATCH_WARNS

EVENTS = {"engine_ready": "engine ready (Ray, verl, vLLM, proxy)", "first_step": "first step begins"}


class Progress:
    """Prints what is new since the last look."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.started = time.time()
        self.seen: set[str] = set()
        self.rows = len(read_lines(run_dir / "metrics.jsonl"))

    def look(self) -> None:
        """Print new events and finished steps."""
        timeline = self.run_dir / "timeline.json"
        for event in json.loads(timeline.read_text() or "{}") if timeline.exists() else {}:
            if event not in self.seen:
                self.seen.add(event)
                self._say(EVENTS.get(event, event))
        rows = read_lines(self.run_dir / "metrics.jsonl")
        for row in rows[self.rows :]:
            self._say(_step_line(row["step"], row["data"]))
        self.rows = len(rows)

    def _say(self, text: str) -> None:
        print(f"[{time.time() - self.started:5.0f} s] {text}", flush=True)


def _step_line(step: int, data: dict[str, float]) -> str:
    parts = []
    if "episodes/reward/mean" in data:
        parts.append(f"reward {data['episodes/reward/mean']:.3f}")
    if "books/trained_tokens" in data:
        parts.append(f"{data['books/episodes']:.0f} episodes, {data['books/trained_tokens']:.0f} tokens trained")
    validation = [value for name, value in data.items() if name.startswith("val-core/")]
    if validation:
        parts.append(f"validation {sum(validation) / len(validation):.3f}")
    if data.get(MISMATCH, 0.0) > MISMATCH_WARNS:
        parts.append(f"vLLM and trainer disagree ({MISMATCH} {data[MISMATCH]:.2g})")
    if "timing_s/step" in data:
        parts.append(f"{data['timing_s/step']:.1f} s")
    if data.get("books/learnable_groups") == 0:
        parts.append("every group has equal reward: nothing learned, weights left as they were")
    elif data.get("episodes/equal_reward_groups"):
        parts.append(f"{data['episodes/equal_reward_groups']:.0f} groups with equal reward (no gradient)")
    return f"step {step}: " + ", ".join(parts)
