"""Score an agent's tiny model by the project's own evaluation, and write its card.

`README.md` comes from `tiny_model_card.md` here and the agent's own. `cold_start.json` has the same
numbers for programs, in points of 100.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from string import Template
from typing import Any

from common.command import INTERRUPTED
from common.settings import WORK
from episodes.agent import Agent, folder_of
from episodes.joint import JointAgent
from training.warmup.examples import ColdStartError

CARD = "tiny_model_card.md"
FACTS = "cold_start.json"


def measure(agent: Agent, model: Path, mastered: Path) -> dict[str, Any]:
    """Score the model, and the one before imperfections were trained in (`mastered`).

    Temperature 1 on every test question, an episode each, and greedy on the validation questions.
    Raises ColdStartError: an evaluation failed, with its messages on stderr.
    """
    ceiling = _evaluate(agent, mastered, "test", "--temperature", "1")
    start = _evaluate(agent, model, "test", "--temperature", "1")
    greedy = _evaluate(agent, model, "val", "--temperature", "0")
    overall = start["overall"]
    name = agent.showing.headline
    interval = overall["ci95" if name == "score" else f"{name}_ci95"]
    measured: dict[str, Any] = {
        "ceiling": _points(ceiling["overall"][name]),
        "start": _points(overall[name]),
        "start_ci95": [_points(bound) for bound in interval],
        "greedy": _points(greedy["overall"][name]),
        "questions": overall["n"],
    }
    for which, scores in {"start": overall, "ceiling": ceiling["overall"]}.items():
        for column in agent.showing.columns:
            if column.metric in scores:
                measured[f"{which}_{column.metric}"] = _points(scores[column.metric])
    if "queried" in overall:
        measured["queried"] = _points(overall["queried"])
    measured["stop_reasons"] = overall["stop_reasons"]
    measured["ceiling_by_group"] = _by_group(ceiling, name)
    measured["start_by_group"] = _by_group(start, name)
    return measured


def _by_group(scores: dict[str, Any], name: str) -> dict[str, float]:
    found = {group: _points(part[name]) for group, part in scores["by_task_type"].items()}
    for kind, part in scores["by_wording"].items():
        found[f"{kind} wordings"] = _points(part[name])
    return found


def headline_of(agent: Agent, model: Path) -> float:
    """Return the agent's headline in [0, 1] on the validation tasks, greedy.

    For several agents this is the mean. Raises ColdStartError: the evaluation failed.
    """
    if isinstance(agent, JointAgent):
        return fmean(headline_of(member, model) for member in agent.members.values())
    overall = _evaluate(agent, model, "val", "--temperature", "0")["overall"]
    return float(overall[agent.showing.headline])


def _evaluate(agent: Agent, model: Path, split: str, *flags: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "evaluation.evaluate", agent.name, *flags]
        command += ["--model", str(model), "--data", str(agent.splits[split]), "--out", out]
        done = subprocess.run(command, cwd=WORK, stdout=subprocess.DEVNULL, check=False)
        if done.returncode in (INTERRUPTED, -signal.SIGINT):
            raise KeyboardInterrupt  # Ctrl-C reaches both; here it may be held back
        if done.returncode:
            raise ColdStartError(
                f"{model} has no card: its evaluation ended with code {done.returncode}"
            )
        return dict(json.loads((Path(out) / "scores.json").read_text(encoding="utf-8")))


def _points(share: float) -> float:
    return round(100 * share, 1)


def card(agent: Agent, facts: dict[str, Any]) -> str:
    """Return the model card: the text for every agent around the agent's own, with the numbers."""
    rows = []
    for name, high in facts["ceiling_by_group"].items():
        rows.append(f"| {name} | {facts['start_by_group'][name]} | {high} |")
    ends = [f"{facts['queried']} % of the episodes query"] if "queried" in facts else []
    ends.append(", ".join(f"{reason} {count}" for reason, count in facts["stop_reasons"].items()))
    low, high = facts["start_ci95"]
    values = facts | {
        "by_group": "\n".join(rows),
        "ends": "; ".join(ends),
        "interval": f"{low} to {high}",
    }
    own = Template((folder_of(agent) / CARD).read_text(encoding="utf-8"))
    shared = Template((Path(__file__).parent / CARD).read_text(encoding="utf-8"))
    return shared.substitute(
        values,
        agent=agent.name,
        headline=agent.showing.headline.replace("_", " "),
        lessons=own.substitute(values).strip(),
    )


def write_card(agent: Agent, folder: Path, facts: dict[str, Any]) -> None:
    (folder / "README.md").write_text(card(agent, facts), encoding="utf-8")
    (folder / FACTS).write_text(
        json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
