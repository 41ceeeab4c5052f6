"""Make an agent's bundled model, score it, and write its card.

    .venv/bin/python -m recipes.tiny_model sql                                 # sql_agent/tiny_model
    .venv/bin/python -m recipes.tiny_model code --steps-a 7000 --steps-b 300   # flags of training.cold_start

`README.md` comes from `tiny_model_card.md` here and the agent's own. `cold_start.json` has the same
numbers for programs, in points of 100. The model is scored at temperature 1 on every test question,
an episode each, and greedy on the validation questions.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from common.command import WRITTEN, Failure, new_parser, run_command
from common.settings import WORK
from episodes import registry
from episodes.agent import Agent, bundled_model, folder_of

CARD = "tiny_model_card.md"
FACTS = "cold_start.json"


def output_of(command: Sequence[str]) -> str:
    """Return what a module of this project prints. Raises Failure if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=WORK, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise Failure(f"{command[0]} ended with code {done.returncode}")
    return done.stdout


def measured(agent: Agent, model: Path, mastered: Path) -> dict[str, Any]:
    """Return the scores of a model, and of the one before its imperfections (`mastered`)."""
    ceiling = scores_of(agent, mastered, "test", "1")
    start = scores_of(agent, model, "test", "1")
    greedy = scores_of(agent, model, "val", "0")
    overall = start["overall"]
    name = agent.columns[0].metric
    interval = overall["ci95" if name == "score" else f"{name}_ci95"]
    found: dict[str, Any] = {
        "ceiling": points(ceiling["overall"][name]),
        "start": points(overall[name]),
        "start_ci95": [points(bound) for bound in interval],
        "greedy": points(greedy["overall"][name]),
        "questions": overall["n"],
    }
    for which, scores in {"start": overall, "ceiling": ceiling["overall"]}.items():
        for column in agent.columns:
            if column.metric in scores:
                found[f"{which}_{column.metric}"] = points(scores[column.metric])
    if "queried" in overall:
        found["queried"] = points(overall["queried"])
    found["stop_reasons"] = overall["stop_reasons"]
    found["ceiling_by_group"] = by_group(ceiling, name)
    found["start_by_group"] = by_group(start, name)
    return found


def scores_of(agent: Agent, model: Path, split: str, temperature: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as out:
        command = ["evaluation.evaluate", agent.name, "--temperature", temperature, "--out", out]
        output_of([*command, "--model", str(model), "--data", str(agent.splits[split])])
        return dict(json.loads((Path(out) / "scores.json").read_text(encoding="utf-8")))


def by_group(scores: dict[str, Any], name: str) -> dict[str, float]:
    found = {group: points(part[name]) for group, part in scores["by_task_type"].items()}
    for kind, part in scores["by_wording"].items():
        found[f"{kind} wordings"] = points(part[name])
    return found


def points(share: float) -> float:
    return round(100 * share, 1)


def card_of(agent: Agent, facts: dict[str, Any]) -> str:
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
        headline=agent.columns[0].metric.replace("_", " "),
        lessons=own.substitute(values).strip(),
    )


def make(name: str, flags: Sequence[str]) -> None:
    agent = registry.get(name)
    model = Path(bundled_model(agent))
    with tempfile.TemporaryDirectory() as folder:
        mastered = Path(folder) / "mastered"
        learn = ["training.cold_start", name, "--force", "--mastered", str(mastered), *flags]
        facts = json.loads(output_of(learn).splitlines()[-1])
        facts["command"] = shlex.join([WRITTEN, "-m", "recipes.tiny_model", name, *flags])
        facts |= measured(agent, model, mastered)
    (model / "README.md").write_text(card_of(agent, facts), encoding="utf-8")
    text = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
    (model / FACTS).write_text(text, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("agent", choices=registry.names(), metavar="AGENT")
    given, flags = parser.parse_known_args(argv)
    return run_command("tiny_model", lambda: make(given.agent, flags))


if __name__ == "__main__":
    sys.exit(main())
