"""The bundled model's card: what the project's own evaluation says of it, and how it was made.

Used by `training/cold_start.py`. Writes `README.md` from `tiny_model_card.md`, and `cold_start.json` with the same
numbers for programs (the demo reads `ceiling` and `start` there): scores in points of 100.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Any

from common.settings import ROOT
from evaluation.results import read_scores

CARD = Path(__file__).with_name("tiny_model_card.md")
FACTS = "cold_start.json"
GREEDY_QUESTIONS = 160


class CardError(RuntimeError):
    """An evaluation that did not end well."""


def measure(model: Path, ceiling: Path, work: Path) -> dict[str, Any]:
    """Score the model, and the one before imperfections were put in (`ceiling`), on questions neither was taught.

    Temperature 1 on every test question, an episode each; greedy on 160 validation questions. `work`: a folder for the
    evaluations' files.

    Raises:
        CardError: an evaluation failed; its messages are on stderr.
    """
    test = ROOT / "data" / "test.parquet"
    before = _evaluate(ceiling, work / "ceiling", test, "--temperature", "1")
    start = _evaluate(model, work / "start", test, "--temperature", "1")
    val = ROOT / "data" / "val.parquet"
    greedy = _evaluate(model, work / "greedy", val, "--temperature", "0", "--n", str(GREEDY_QUESTIONS))
    kinds = before["by_task_type"]
    return {
        "ceiling": _points(before["overall"]),
        "start": _points(start["overall"]),
        "start_ci95": [round(100 * bound, 1) for bound in start["overall"]["ci95"]],
        "greedy": _points(greedy["overall"]),
        "questions": start["overall"]["n"],
        "queried": round(100 * start["overall"]["queried"], 1),
        "stop_reasons": start["overall"]["stop_reasons"],
        "ceiling_by_type": {kind: _points(scores) for kind, scores in kinds.items()},
        "start_by_type": {kind: _points(start["by_task_type"][kind]) for kind in kinds},
    }


def _evaluate(model: Path, out: Path, data: Path, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "evaluation.evaluate", "--model", str(model), "--data", str(data)]
    done = subprocess.run([*command, "--out", str(out), *flags], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise CardError(f"the evaluation of {model} ended with code {done.returncode}")
    return read_scores(out)


def _points(scores: dict[str, Any]) -> float:
    return round(100 * scores["score"], 1)


def write_card(folder: Path, facts: dict[str, Any]) -> None:
    """Write the card and `cold_start.json` into the model's folder."""
    rows = [f"| {kind} | {facts['start_by_type'][kind]} | {high} |" for kind, high in facts["ceiling_by_type"].items()]
    stops = ", ".join(f"{reason} {count}" for reason, count in facts["stop_reasons"].items())
    low, high = facts["start_ci95"]
    told = {**facts, "by_type": "\n".join(rows), "stops": stops, "interval": f"{low} to {high}"}
    text = Template(CARD.read_text(encoding="utf-8")).substitute(told)
    (folder / "README.md").write_text(text, encoding="utf-8")
    (folder / FACTS).write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
