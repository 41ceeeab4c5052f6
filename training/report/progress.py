"""What a run shows while it works: a line for each event and step, and on a terminal a view that
stays below them.

    with Progress(plan, planned_steps(config)) as progress:
        progress.look(await in_flight(store))           # again and again, until the run has ended

All of it is read from the run folder's files as they grow (`episodes.jsonl`, `metrics.jsonl`,
`timeline.json`); only the numbers of waiting and played rollouts come from the store.
`training.report.live_view` draws.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from omegaconf import DictConfig

from common.jsonl import NewLines, read_jsonl
from training.engine.mixture import draws
from training.report.live_view import View
from training.report.seen import STARTING, Seen, step_line
from training.report.summary import read_timeline
from training.setup.agreement import last_step
from training.setup.plan import MAX_UNSCORED_SHARE, Plan

if TYPE_CHECKING:
    from agentlightning import LightningStore

EVENTS = {
    "engine_ready": "engine ready (Ray, verl, vLLM, proxy)",
    "first_step": "first step begins",
}
# Names that people read for the states of rollouts that have not ended; agent-lightning's "running"
# begins with the first call.
STATES = {"waiting": ("queuing", "requeuing"), "begun": ("preparing",), "playing": ("running",)}
STORE_SECONDS = 2.0


def planned_steps(config: DictConfig) -> int:
    """Return the number of the last step, as verl counts: epochs of whole batches, or fewer if the
    configuration says so.
    """
    named = config.data.train_files
    files = [named] if isinstance(named, str) else named
    rows = [row for file in files for _, row in read_jsonl(Path(file))]
    return last_step(config, len(draws(rows, int(config.data.seed))))


def wants_view(plan: Plan) -> bool:
    """Return whether there is a terminal for the view, and no log that scrolls over it."""
    terminal = sys.stdout.isatty() and sys.stderr.isatty()
    return plan.live and not plan.debug and terminal


async def in_flight(store: LightningStore) -> dict[str, int]:
    """Return the numbers of rollouts that have not ended, by STATES; {} while the store does not
    answer.
    """

    async def count(states: tuple[str, ...]) -> int:
        found: Any = await store.query_rollouts(status_in=list(states), limit=1)
        return int(found.total)

    try:
        counts = await asyncio.wait_for(asyncio.gather(*map(count, STATES.values())), STORE_SECONDS)
    except (aiohttp.ClientError, TimeoutError):
        return {}
    return dict(zip(STATES, counts, strict=True))


# Causes of episodes/outcomes.toml that another machine, or another day, would not give
BY_CLOCK = {
    "timeout",
    "machine_too_slow",
    "judge_timeout",
    "patient_timeout",
    "simulator_timeout",
    "rollout_timeout",
    "rollout_unresponsive",
}


class Progress(ExitStack):
    """Prints what is new in a run's folder since the last look; keeps a view of all of it below
    where the plan and the terminal want one. `steps` is the number of the last step.
    """

    def __init__(self, plan: Plan, steps: int) -> None:
        super().__init__()
        self.deterministic = plan.deterministic  # as requested, and still true
        self.run_dir = plan.run_dir
        self.live = wants_view(plan)
        self.started = time.time()
        self.seen = Seen(steps)
        self.events = set[str]()
        self._episodes = NewLines(self.run_dir / "episodes.jsonl")
        self._metrics = NewLines(self.run_dir / "metrics.jsonl")
        # Steps that ended since the start, and when the last one did
        self._steps = 0
        self._stepped = self.started
        self._view: View | None = None

    def __enter__(self) -> Progress:
        self._say(STARTING)
        if self.live:
            self._view = self.enter_context(View(self.run_dir.name))
        return self

    def look(self, in_flight: Mapping[str, int] | None = None) -> None:
        """Print new events and finished steps, and draw the view."""
        for event in [event for event in read_timeline(self.run_dir) if event not in self.events]:
            self.events.add(event)
            self.seen.phase = EVENTS[event]
            self._say(EVENTS[event])
        episodes = self._episodes.look()
        for record in episodes:
            self.seen.add_episode(record)
        self._note_clocks(episodes)
        self._note_left_out([record for record in episodes if record["mode"] == "train"])
        for row in self._metrics.look():
            self.seen.add_step(row["step"], row["data"])
            self._note_end(row["data"])
            self._say(step_line(row["step"], row["data"], self.seen))
        self.seen.seconds = time.time() - self.started
        self.seen.left = self._left()
        self.seen.in_flight = in_flight or {}
        if self._view:
            self._view.draw(self.seen)

    def _note_clocks(self, episodes: Sequence[Mapping[str, Any]]) -> None:
        """Report once if a deterministic run no longer is one, because a clock ended an episode."""
        late = Counter(record["cause"] for record in episodes if record["cause"] in BY_CLOCK)
        if self.deterministic and late:
            self.deterministic = False
            named = ", ".join(f"{name} {count}" for name, count in late.most_common())
            self._say(
                f"this run is no longer deterministic: a time limit ended {late.total()} "
                f"episodes ({named}), and a machine that is less busy would have scored "
                "them; run it with nothing beside it, or longer limits"
            )

    def _note_left_out(self, episodes: Sequence[Mapping[str, Any]]) -> None:
        """Report at once if so many episodes that came together have no score that their step may
        be skipped.
        """
        causes = Counter(record["cause"] for record in episodes if record["cause"])
        if causes.total() > MAX_UNSCORED_SHARE * len(episodes):
            named = ", ".join(f"{name} {count}" for name, count in causes.most_common())
            self._say(f"{causes.total()} of {len(episodes)} episodes are left out: {named}")

    def _note_end(self, data: Mapping[str, float]) -> None:
        if "timing_s/step" in data:
            self._steps += 1
            self._stepped = time.time()
            self.seen.left = self._left()

    def _left(self) -> float | None:
        """Return the seconds until the last step ends. Validations and checkpoints between the
        steps count in the mean.
        """
        began = read_timeline(self.run_dir).get("first_step")
        if not self._steps or began is None:
            return None
        each = (self._stepped - began) / self._steps
        return max(0.0, (self.seen.steps - self.seen.step) * each - (time.time() - self._stepped))

    def _say(self, text: str) -> None:
        print(f"[{time.time() - self.started:5.0f} s] {text}", flush=True)
