"""Score an agent's tiny model by the project's own evaluation, and write its card.

`README.md` comes from `tiny_model_card.md` here and the agent's own. `cold_start.json` has the same
numbers for programs, in points of 100.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from string import Template
from typing import Any

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
    shown = [column.metric for column in agent.showing.columns]
    of_both = {"start": overall, "ceiling": ceiling["overall"]}
    return {
        "ceiling": _points(ceiling["overall"][name]),
        "start": _points(overall[name]),
        "start_ci95": [
            _points(bound) for bound in overall["ci95" if name == "score" else f"{name}_ci95"]
        ],
        "greedy": _points(greedy["overall"][name]),
        "questions": overall["n"],
        **{
            f"{which}_{fact}": _points(of[fact])
            for which, of in of_both.items()
            for fact in shown
            if fact in of
        },
        **({"queried": _points(overall["queried"])} if "queried" in overall else {}),
        "stop_reasons": overall["stop_reasons"],
        "ceiling_by_group": _by_group(ceiling, name),
        "start_by_group": _by_group(start, name),
    }


def _by_group(scores: dict[str, Any], name: str) -> dict[str, float]:
    groups = scores["by_task_type"] | {
        f"{kind} wordings": part for kind, part in scores["by_wording"].items()
    }
    return {group: _points(part[name]) for group, part in groups.items()}


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
        command = [
            sys.executable,
            "-m",
            "evaluation.evaluate",
            agent.name,
            "--model",
            str(model),
            *flags,
        ]
        command += ["--data", str(agent.splits[split]), "--out", out]
        done = subprocess.run(command, cwd=WORK, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise ColdStartError(
                f"{model} has no card: its evaluation ended with code {done.returncode}"
            )
        return dict(json.loads((Path(out) / "scores.json").read_text(encoding="utf-8")))


def _points(share: float) -> float:
    return round(100 * share, 1)


def card(agent: Agent, facts: dict[str, Any]) -> str:
    """Return the model card: the text for every agent around the agent's own, with the numbers."""
    rows = [
        f"| {name} | {facts['start_by_group'][name]} | {high} |"
        for name, high in facts["ceiling_by_group"].items()
    ]
    ends = [f"{facts['queried']} % of the episodes query"] if "queried" in facts else []
    ends.append(", ".join(f"{reason} {count}" for reason, count in facts["stop_reasons"].items()))
    low, high = facts["start_ci95"]
    values = facts | {
        "by_group": "\n".join(rows),
        "ends": "; ".join(ends),
        "interval": f"{low} to {high}",
    }
    own, shared = (
        Template((of / CARD).read_text(encoding="utf-8"))
        for of in (folder_of(agent), Path(__file__).parent)
    )
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
