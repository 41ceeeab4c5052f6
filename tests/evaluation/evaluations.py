"""The evaluation program on a file, and records and configurations as it writes them."""

import json
from pathlib import Path
from typing import Any

from evaluation import evaluate
from evaluation.results import write_results
from sql_agent.agent import AGENT
from tests.corpora import cases_of

CONFIG, RECORD = cases_of(__file__, "plain")


def record(name: str = "q1", score: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    """Return the record of one of the SQL agent's episodes: no query, one turn."""
    told = {"id": name, "question": f"question {name}", "answer": f"answer | {score}"}
    scored = {"score": score, "unscored": None if score is not None else "judge_failed"}
    return {**RECORD, **told, **scored, **changes}


def evaluation(folder: Path, records: list[dict[str, Any]], **config: Any) -> Path:
    """A finished evaluation in a new folder."""
    folder.mkdir(parents=True)
    write_results(AGENT, folder, CONFIG | config, records)
    return folder


def run(data: Path, *flags: str, agent: str = "sql") -> tuple[int, Any, Any]:
    """Run the program; return its exit code, scores and episodes."""
    out = data.parent / "out"
    code = evaluate.main([agent, "--data", str(data), "--out", str(out), *flags])
    lines = (out / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    scores = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    return code, scores, [json.loads(line) for line in lines]
