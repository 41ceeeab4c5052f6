"""Runs -> one HTML file that needs nothing else: data as JSON, a script and a style of our own, no
address.

    page = read([Path("runs/NAME")])
    for number, html in enumerate(page.parts(every=False)): ...     # the first part alone, or all of them

Texts of episodes are data: they reach the page as JSON that holds no "<", and its script puts them
there as text. The page's policy (CSP) allows the one style and the one script by their hashes and
nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from common.command import UsageError
from episodes.agent import Agent, Record
from episodes.shown import Shown, transcript
from episodes.words import words_of
from evaluation.report.charts import absent, charts_of
from evaluation.report.facts import (
    Comparison,
    Tally,
    agent_of,
    comparisons,
    differences,
    differing_settings,
    facts_of,
    tables_of,
    unscored,
)
from evaluation.report.result import results_of
from evaluation.run_folder import EVALUATION, TRAINING, Run, numbers, open_folders

FOLDER = Path(__file__).with_name("assets")
REPORT = "report.html"
SCRIPTS = ("look.js", "charts.js", "tokens.js", "episodes.js", "page.js")
MOST = 8  # folders side by side: as many as there are colours
# Episodes of the runs on one page; more become a sample, or parts
PAGE_EPISODES, PAGE_BYTES = (
    5_000,
    32 * 2**20,
)
# Of an episode: characters of a text, items of a list, levels
MOST_TEXT, MOST_ITEMS, DEEPEST = (
    20_000,
    400,
    10,
)
MOST_ROWS = 100_000  # of a table or a curve
MALFORMED = (KeyError, TypeError, ValueError, AttributeError)  # a record is not as we write it
# Keys that the page shows in places of their own
PLACED = (
    "id",
    "sample",
    "transcript",
    "tokens",
    "unscored",
    "cause",
    "detail",
)
ASKED = ("task_type", "difficulty", "wording", "question", "reference")
ENDED = ("answer", "stop_reason", "score", "reward", "turns", "seconds", "completion_tokens")
NAMED = (*ASKED, *ENDED, "mode", "step")


@dataclass
class Page:
    """What all parts of a report share; the episodes are read again for each part."""

    runs: Sequence[Run]
    agents: Sequence[Agent | None]
    tallies: Sequence[Tally]
    most: int  # episodes on one page

    @property
    def title(self) -> str:
        """The names of the folders that were asked for."""
        return " · ".join(dict.fromkeys(run.given.resolve().name for run in self.runs))

    @property
    def total(self) -> int:
        return sum(tally.episodes for tally in self.tallies)

    @cached_property
    def count(self) -> int:
        """How many parts hold every episode."""
        paths = [run.folder / "episodes.jsonl" for run in self.runs]
        size = sum(path.stat().st_size for path in paths if path.is_file())
        return max(1, -(-self.total // self.most), -(-size // PAGE_BYTES))

    def parts(self, every: bool, names: Sequence[str] = ()) -> Iterator[str]:
        """Yield the HTML of each part, or only of the first part, which is the sample.

        names: the files of all parts.
        """
        for part in range(self.count if every else 1):
            episodes = [*self.episodes(part)]
            shared = self.shared | {
                "parts": [*names] if every and len(names) > 1 else [],
                "part": part,
            }
            yield html(self.title, shared, episodes)

    def episodes(self, part: int) -> Iterator[str]:
        """Yield the JSON of each episode in a part.

        A task is in one part only, and in the same one for every run.
        """
        for number, (run, agent) in enumerate(zip(self.runs, self.agents, strict=True)):
            for record in run.episodes():
                name = (
                    str(record.get("group"))
                    if record.get("mode") == "train"
                    else task_of(record)[0]
                )
                if zlib.crc32(name.encode("utf-8", "replace")) % self.count == part:
                    yield dumped(episode_of(number, record, agent))

    @cached_property
    def compared(self) -> Sequence[Comparison]:
        """Evaluations against the first of their agent."""
        return comparisons(self.runs, self.tallies)

    @cached_property
    def words(self) -> dict[str, str]:
        """What the page says in Chinese, by what it says in English: its own words and agents'."""
        own = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))
        return {
            name: text
            for agent in self.agents
            if agent
            for name, text in words_of(agent.folder).chinese.items()
        } | own

    @cached_property
    def shared(self) -> dict[str, Any]:
        """All but the episodes."""
        runs = [
            {"label": run.label or run.folder.name, "kind": run.kind, "facts": facts_of(run)}
            | {"tables": tables_of(run, agent), "episodes": tally.episodes}
            for run, agent, tally in zip(self.runs, self.agents, self.tallies, strict=True)
        ]
        return {
            "title": self.title,
            "words": self.words,
            "runs": runs,
            "charts": charts_of(self.runs, [tally.validation for tally in self.tallies]),
            "absent": absent(self.runs),
            "unscored": unscored(self.runs, self.tallies),
            "settings": differing_settings([run for run in self.runs if run.kind == TRAINING]),
            "differences": differences(self.runs, self.compared),
            "results": results_of(self.runs, self.agents, self.tallies, self.compared),
            "total": self.total,
            "count": self.count,
            "missing": [
                f"{run.label}: {line}" if run.label else line
                for run in self.runs
                for line in run.missing
            ],
        }


def read(folders: Sequence[Path], most: int | None = None) -> Page:
    """Return a page of the runs in these folders; each folder is read once.

    most: episodes on a page.

    Raises UsageError: see open_folders; or too many folders.
    """
    if len(folders) > MOST:
        raise UsageError(f"{len(folders)} folders; at most {MOST} stand side by side")
    runs = open_folders(folders)
    agents = [agent_of(run) for run in runs]
    compared = sum(run.kind == EVALUATION for run in runs) > 1
    tallies = [Tally.of(run, agent, compared) for run, agent in zip(runs, agents, strict=True)]
    return Page(runs, agents, tallies, most or PAGE_EPISODES)


def task_of(record: Record) -> tuple[str, Any]:
    """Return the id and sample that episodes shown side by side have in common; those of a
    validation are the same for all steps and runs.

    The id includes the question, because the files of two runs may differ.
    """
    if record.get("mode") == "val" and "index" in record:
        question = str(record.get("question") or "").encode("utf-8", "replace")
        return f"val-{record['index']}-{zlib.crc32(question):08x}", record.get("sample")
    if "rollout_id" in record:
        return str(record["rollout_id"]), None
    return str(record.get("id")), record.get("sample")


def episode_of(run: int, record: Record, agent: Agent | None) -> dict[str, Any]:
    """Return all that the page shows of an episode; `problem` says why its events are shown
    plainly.
    """
    shown, problem = shown_of(record, agent)
    try:
        tokens = tokens_of(record)
    except MALFORMED as error:
        tokens, problem = [], f"tokens: {type(error).__name__}: {error}"
    own = {name: value for name, value in record.items() if name not in (*PLACED, *NAMED)}
    groups = {
        name: numbers(own.pop(name))
        for name in ("terms", "measures", "facts", "checks")
        if name in own
    }
    return {
        "run": run,
        **dict(zip(("id", "sample"), task_of(record), strict=True)),
        "unscored": record.get("unscored") or record.get("cause"),
        "detail": record.get("detail"),
        "problem": problem,
        "shown": [asdict(piece) for piece in shown],
        "tokens": tokens,
        "numbers": groups,
        "more": own,
        **{name: record[name] for name in NAMED if name in record},
    }


def shown_of(record: Record, agent: Agent | None) -> tuple[Sequence[Shown], str]:
    """Return the pieces of an episode as its agent shows them. If that fails, return the pieces of
    its transcript, and the reason.
    """
    problem = ""
    kept = record.get("transcript") or "rollout_id" not in record
    for show in (agent.showing.shown if agent and kept else transcript, transcript):
        try:
            return show(record), problem
        except MALFORMED as error:
            problem = f"{type(error).__name__}: {error}"
    return [], problem


def tokens_of(record: Record) -> list[dict[str, Any]]:
    """Return for each sequence the number of its tokens, the number trained, and its stretches cut
    into parts for the page.
    """
    return [
        {
            "count": sum(len(stretch["ids"]) for stretch in sequence),
            "trained": sum(len(stretch["ids"]) for stretch in sequence if stretch["trained"]),
            "parts": [part for stretch in sequence for part in _parts(stretch)],
        }
        for sequence in record.get("tokens") or ()
    ]


def _parts(stretch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield parts of at most MOST_ITEMS tokens. Several tokens of one character count as one, with
    the sum of their log probabilities.
    """
    whole: list[tuple[str, float]] = []
    begun = 0.0
    for text, log_prob in zip(
        stretch["texts"], stretch.get("log_probs") or [0.0] * len(stretch["texts"]), strict=True
    ):
        begun += log_prob
        if text:
            whole.append((str(text), begun))
            begun = 0.0
    for first in range(0, len(whole), MOST_ITEMS):
        texts, log_probs = zip(*whole[first : first + MOST_ITEMS], strict=True)
        rated = {"log_probs": log_probs} if "log_probs" in stretch else {}
        yield {"trained": stretch["trained"], "texts": texts, **rated}


def dumped(value: Any, most: int = MOST_ITEMS) -> str:
    """Return JSON that any browser reads and that cannot end the element around it; lists are cut
    to `most` items.
    """
    text = json.dumps(plain(value, most), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode(
        "utf-8", "backslashreplace"
    ).decode()  # half of a surrogate pair becomes JSON's escape of it


def plain(value: Any, most: int, depth: int = 0) -> Any:
    """Return the value as JSON of bounded size: NaN becomes null, and what is cut says how much is
    missing.
    """
    if isinstance(value, str):
        return (
            value
            if len(value) <= MOST_TEXT
            else f"{value[:MOST_TEXT]} … (+{len(value) - MOST_TEXT})"
        )
    if depth > DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {
            str(name)[:MOST_TEXT]: plain(item, most, depth + 1)
            for name, item in list(value.items())[:most]
        }
    if isinstance(value, list | tuple):
        left = len(value) - most
        return [plain(item, most, depth + 1) for item in value[:most]] + (
            [f"… (+{left})"] if left > 0 else []
        )
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, bool | int) else str(value)


def html(title: str, shared: dict[str, Any], episodes: Sequence[str]) -> str:
    """Return the page."""
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    script = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    template = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined
    )
    data = f'{{"shared":{dumped(shared, MOST_ROWS)},"episodes":[{",".join(episodes)}]}}'
    values = {
        "style": style,
        "script": script,
        "style_hash": _digest(style),
        "script_hash": _digest(script),
    }
    return template.get_template("page.html.j2").render(title=title, data=data, **values)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
