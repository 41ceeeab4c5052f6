"""An evaluation's folder, written and read back: `scores.json`, `table.md`, `episodes.jsonl`."""

import contextlib
import json
import random
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.command import UsageError
from common.journal import differences
from common.jsonl import read_jsonl, write_jsonl, write_text
from common.settings import WORK
from episodes.agent import Agent, Record, Row
from episodes.episode import Task
from episodes.play_and_score import AgentFault
from evaluation.metrics import summarise
from evaluation.tables import PARTS, report_of

SCORES, TABLE, EPISODES = "scores.json", "table.md", "episodes.jsonl"
ERROR = "error.txt"
# What was read is not as we write it
MALFORMED = (LookupError, TypeError, ValueError, AttributeError)
FOLDER = WORK / "outputs" / "evaluations"


@dataclass(frozen=True)
class Sample:
    """One episode to play: a task, and which of its episodes this is (from 0)."""

    task: Task
    number: int

    @property
    def key(self) -> str:
        return f"{self.task.id}#{self.number}"


def sample_rows(rows: Sequence[Row], n: int | None, seed: int) -> list[Row]:
    """Return `n` rows in file order, task types by their share, or all rows for None."""
    if n is None or n >= len(rows):
        return list(rows)
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        kinds[row.get("task_type") or ""].append(number)
    exact = {kind: n * len(members) / len(rows) for kind, members in kinds.items()}
    quota = {kind: int(share) for kind, share in exact.items()}
    most_cut = sorted(kinds, key=lambda kind: quota[kind] - exact[kind])
    for kind in most_cut[: n - sum(quota.values())]:
        quota[kind] += 1
    chance = random.Random(seed)
    chosen: list[int] = []
    for kind in sorted(kinds):
        chosen += chance.sample(kinds[kind], quota[kind])
    return [rows[number] for number in sorted(chosen)]


def write_results(
    agent: Agent, folder: Path, config: dict[str, Any], records: Sequence[Record]
) -> dict[str, Any]:
    """Write the three files, each at once, scores last, and return what is in scores.json."""
    scores = config | summarise(agent, records)
    write_jsonl(folder / EPISODES, records, force=True)
    write_text(folder / TABLE, report_of(agent, scores).markdown(), force=True)
    write_text(folder / SCORES, json.dumps(scores, ensure_ascii=False, indent=1) + "\n", force=True)
    return scores


def read_scores(folder: Path) -> dict[str, Any]:
    """Return the content of scores.json. Raises UsageError: missing, or of another kind."""
    path = folder / SCORES
    if not path.is_file():
        seen = "holds no scores.json" if folder.is_dir() else "is no folder"
        raise UsageError(f"{folder} {seen}; give one that evaluation.evaluate wrote to its end")
    try:
        scores: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        texts = [scores["agent"], scores["model"], scores["data"]["file"], scores["data"]["sha256"]]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"expected agent, model, and data's file and sha256, got {texts}")
        sum(scores["overall"]["unscored"].values())
        return scores
    except (OSError, RecursionError, *MALFORMED) as error:
        raise UsageError(f"{path} is not the result of an evaluation: {error!r}") from None


def read_episodes(folder: Path) -> list[Record]:
    """Return the lines of all episodes, unscored ones included. Raises UsageError: unreadable."""
    return [record for _, record in read_jsonl(folder / EPISODES)]


def finished(agent: Agent, folder: Path, config: dict[str, Any]) -> bool:
    """Return whether this evaluation has ended. Raises UsageError: it is another, or was edited."""
    if not (folder / SCORES).exists() or (folder / f"{EPISODES}.journal").exists():
        return False
    found = read_scores(folder)
    conditions = {name: value for name, value in found.items() if name not in PARTS}
    if changes := differences(conditions, config):
        raise UsageError(
            f"{folder} holds another evaluation: {changes}. "
            "Choose another --out, or --force to replace it"
        )
    try:
        report_of(agent, found)
    except MALFORMED as error:
        raise UsageError(f"{folder / SCORES} was edited ({error!r}); use --force") from None
    return True


@contextlib.contextmanager
def traceback_kept(folder: Path) -> Iterator[None]:
    """Write where an agent's own code raised into the folder, and name the file in the message."""
    try:
        yield
    except AgentFault as fault:
        path = folder / ERROR
        write_text(path, "".join(traceback.format_exception(fault)), force=True)
        raise AgentFault(f"{fault}; its traceback is in {path}") from fault
