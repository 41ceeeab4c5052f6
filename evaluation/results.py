"""The folder of an evaluation: `scores.json`, `table.md` and `episodes.jsonl`, written whole and read back.

write_results(agent, folder, configuration, records)
read_scores(folder)["overall"]["score"]
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.command import UsageError
from common.jsonl import FileError, read_jsonl, write_jsonl, write_text
from episodes.agent import Agent, Record
from evaluation.metrics import summarise
from evaluation.tables import markdown

SCORES, TABLE, EPISODES = "scores.json", "table.md", "episodes.jsonl"


class ResultsError(UsageError):
    """A folder that is not an evaluation's, or another one's; one line that says what to do."""


def write_results(agent: Agent, folder: Path, config: dict[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    """Summarise the records, write the three files, each at once, scores last; return what is in scores.json."""
    scores = config | summarise(agent, records, config["seed"])
    write_jsonl(folder / EPISODES, records, force=True)
    write_text(folder / TABLE, markdown(agent, scores), force=True)
    write_text(folder / SCORES, json.dumps(scores, ensure_ascii=False, indent=1) + "\n", force=True)
    return scores


def read_scores(folder: Path) -> dict[str, Any]:
    """What is in scores.json.

    Raises:
        ResultsError: it is missing, or not an evaluation's.
    """
    path = folder / SCORES
    try:
        scores = json.loads(path.read_text(encoding="utf-8"))
        return {"agent": scores["agent"], "overall": scores["overall"], "data": scores["data"], **scores}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} is not the result of an evaluation: {type(error).__name__}: {error}") from None


def read_episodes(folder: Path) -> list[Record]:
    """The records of all episodes, unscored ones included.

    Raises:
        ResultsError: the file is missing, or not an evaluation's.
    """
    try:
        records = [record for _, record in read_jsonl(folder / EPISODES)]
    except FileError as error:
        raise ResultsError(str(error)) from None
    if not records or any(not {"id", "score", "question"} <= record.keys() for record in records):
        raise ResultsError(f"{folder / EPISODES} does not hold the episodes of an evaluation")
    return records


def finished(folder: Path, config: dict[str, Any]) -> bool:
    """Whether the folder holds all scores of this very evaluation; False where there is none or an unfinished one.

    Raises:
        ResultsError: it holds those of another one.
    """
    if not (folder / SCORES).exists() or (folder / f"{EPISODES}.journal").exists():
        return False
    found = read_scores(folder)
    different = [name for name, value in config.items() if found.get(name) != value]
    if different:
        was = "; ".join(f"{name} was {found.get(name)!r}, now {config[name]!r}" for name in different)
        raise ResultsError(f"{folder} holds another evaluation: {was}. Choose another --out, or --force to replace it")
    return True
