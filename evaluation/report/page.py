"""Turn runs into one HTML file that needs nothing else.

Texts of episodes are data: JSON without "<", which the script puts there as text. The page's policy
(CSP) allows the one style and the one script by their hashes.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from common.command import UsageError
from common.toml import table_beside
from episodes import outcomes
from episodes.agent import Agent, Record, folder_of
from episodes.shown import Shown, transcript
from episodes.words import words_of
from evaluation.compare import conditions
from evaluation.compare import report_of as comparison_of
from evaluation.report.charts import charts_of
from evaluation.report.facts import (
    Tally,
    comparisons,
    facts_of,
    failure_of,
    failures_of,
    tables_of,
    tally_of,
    unscored,
)
from evaluation.report.result import results_of
from evaluation.results import MALFORMED
from evaluation.run_folder import numbers, open_folders

FOLDER = Path(__file__).with_name("assets")
REPORT = "report.html"
SCRIPTS = ("look.js", "charts.js", "tokens.js", "episodes.js", "page.js")
MOST = 8  # folders side by side: as many as there are colours
PAGE_EPISODES = 5_000  # of all runs; more become a sample by task, and so do more bytes
PAGE_BYTES = 32 * 2**20
MOST_TEXT = 20_000  # characters of an episode's text
MOST_ITEMS = 400  # of a list
DEEPEST = 10  # levels
MOST_ROWS = 100_000  # of a table or a curve
# Keys that the page shows in places of their own
PLACED = ("id", "sample", "transcript", "tokens", "unscored", "cause", "detail")
NAMED = (
    *("task_type", "difficulty", "wording", "question", "reference", "mode", "step"),
    *("answer", "stop_reason", "score", "reward", "turns", "seconds", "completion_tokens"),
)


@dataclass
class Page:
    """A report: its runs. Episodes are read again for the page."""

    tallies: Sequence[Tally]

    @property
    def title(self) -> str:
        names = [tally.run.given.resolve().name for tally in self.tallies]
        return " · ".join(dict.fromkeys(names))

    @cached_property
    def total(self) -> int:
        return sum(tally.episodes for tally in self.tallies)

    @cached_property
    def one_of(self) -> int:
        """Of so many tasks one is in the sample."""
        paths = [tally.run.folder / "episodes.jsonl" for tally in self.tallies]
        size = sum(path.stat().st_size for path in paths if path.is_file())
        return max(1, -(-self.total // PAGE_EPISODES), -(-size // PAGE_BYTES))

    def episodes(self) -> Iterator[str]:
        """Yield the JSON of each episode in the sample, which has the same tasks of every run."""
        for number, tally in enumerate(self.tallies):
            for record in tally.run.episodes():
                name = task_of(record)[0]
                if record.get("mode") == "train":
                    name = str(record.get("group"))
                if zlib.crc32(name.encode("utf-8", "replace")) % self.one_of == 0:
                    yield dumped(episode_of(number, record, tally.agent))

    @property
    def shared(self) -> dict[str, Any]:
        """All but the episodes.

        words: the agents' and the page's own in Chinese, by what it says in English. heads: what
        the heads of tables mean, in both languages.
        """
        words: dict[str, str] = {}
        heads = table_beside(__file__, "assets/heads.toml")
        runs = []
        for tally in self.tallies:
            if tally.agent:
                own = words_of(folder_of(tally.agent))
                words |= own.chinese
                heads |= own.meaning
            run = tally.run
            shown = {"label": run.label or run.folder.name, "kind": run.kind}
            told = {"facts": facts_of(run), "tables": tables_of(tally)}
            runs.append({**shown, **told, "episodes": tally.episodes})
        compared = comparisons(self.tallies)
        differences = []
        for one in compared:
            names = [self.tallies[number].run.label for number in (one.base, one.run)]
            tables = dict(comparison_of(one.result, names).tables)
            facts = conditions(one.result, names)
            differences.append({"sides": names[::-1], "facts": facts, "tables": tables})
        return {
            "title": self.title,
            "words": words | outcomes.CHINESE | table_beside(__file__, "assets/words.toml"),
            "heads": heads,
            "runs": runs,
            "charts": charts_of(self.tallies),
            "failures": failures_of(self.tallies),
            "unscored": unscored(self.tallies),
            "differences": differences,
            "results": results_of(self.tallies, compared),
            "total": self.total,
            "missing": self.missing,  # at last, because all that reads may find something missing
        }

    @property
    def missing(self) -> list[str]:
        """What the runs' folders lack, a line each."""
        lines = []
        for run in (tally.run for tally in self.tallies):
            lines += [f"{run.label}: {line}" if run.label else line for line in run.missing]
        return lines

    def html(self, reload: int | None = None) -> str:
        """Return the page. reload: seconds after which it opens itself anew, for a run that goes on."""
        style = (FOLDER / "page.css").read_text(encoding="utf-8")
        script = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
        loader = FileSystemLoader(FOLDER)
        template = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        shared = dumped({**self.shared, "as_of": now if reload else None}, MOST_ROWS)
        return template.get_template("page.html.j2").render(
            title=self.title,
            reload=reload,
            data=f'{{"shared":{shared},"episodes":[{",".join(self.episodes())}]}}',
            style=style,
            script=script,
            style_hash=_digest(style),
            script_hash=_digest(script),
        )


def read(folders: Sequence[Path]) -> Page:
    """Return a page of the runs in these folders. Raises UsageError: see open_folders; too many."""
    if len(folders) > MOST:
        raise UsageError(f"{len(folders)} folders; at most {MOST} stand side by side")
    return Page([tally_of(run) for run in open_folders(folders)])


def task_of(record: Record) -> tuple[str, Any]:
    """Return the id and sample that episodes side by side share. A validation's are all the same.
    The id includes the question, because the files of two runs may differ.
    """
    if record.get("mode") == "val" and "index" in record:
        question = str(record.get("question") or "").encode("utf-8", "replace")
        return f"val-{record['index']}-{zlib.crc32(question):08x}", record.get("sample")
    if "rollout_id" in record:
        return str(record["rollout_id"]), None
    return str(record.get("id")), record.get("sample")


def episode_of(run: int, record: Record, agent: Agent | None) -> dict[str, Any]:
    """Return what the page shows of an episode. `problem`: why its events are shown plainly."""
    shown, problem = shown_of(record, agent)
    try:
        tokens = tokens_of(record)
    except MALFORMED as error:
        tokens = []
        problem = f"tokens: {type(error).__name__}: {error}"
    own = {name: value for name, value in record.items() if name not in (*PLACED, *NAMED)}
    groups = {}
    for name in ("terms", "measures", "facts", "checks"):
        if name in own:
            groups[name] = numbers(own.pop(name))
    task, sample = task_of(record)
    return {
        "run": run,
        "id": task,
        "sample": sample,
        "failure": failure_of(record, agent),
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
    """Return the pieces of an episode, or those of its transcript and why its agent failed."""
    problem = ""
    kept = record.get("transcript") or "rollout_id" not in record
    for show in (agent.shown if agent and kept else transcript, transcript):
        try:
            return show(record), problem
        except MALFORMED as error:
            problem = f"{type(error).__name__}: {error}"
    return [], problem


def tokens_of(record: Record) -> list[dict[str, Any]]:
    """Return each sequence's tokens, those trained, and its stretches cut for the page."""
    sequences = []
    for sequence in record.get("tokens") or ():
        shown: dict[str, Any] = {"count": 0, "trained": 0, "parts": []}
        for stretch in sequence:
            shown["count"] += len(stretch["ids"])
            shown["trained"] += len(stretch["ids"]) if stretch["trained"] else 0
            shown["parts"] += _parts(stretch)
        sequences.append(shown)
    return sequences


def _parts(stretch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    rated = "log_probs" in stretch
    of_tokens = stretch["log_probs"] if rated else [0.0] * len(stretch["texts"])
    texts = []
    log_probs = []
    begun = 0.0
    for text, log_prob in zip(stretch["texts"], of_tokens, strict=True):
        begun += log_prob
        if text:
            texts.append(str(text))
            log_probs.append(begun)
            begun = 0.0
    for first in range(0, len(texts), MOST_ITEMS):
        part = {"trained": stretch["trained"], "texts": texts[first : first + MOST_ITEMS]}
        if rated:
            part["log_probs"] = log_probs[first : first + MOST_ITEMS]
        yield part


def dumped(value: Any, most: int = MOST_ITEMS) -> str:
    """Return JSON for any browser that cannot end its element, with lists cut to `most` items."""
    text = json.dumps(plain(value, most), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace").decode()  # half of a surrogate pair has no UTF-8


def plain(value: Any, most: int, depth: int = 0) -> Any:
    """Return JSON of bounded size: NaN becomes null, and what is cut says how much is missing."""
    if isinstance(value, str):
        cut = len(value) - MOST_TEXT
        return value if cut <= 0 else f"{value[:MOST_TEXT]} … (+{cut})"
    if depth > DEEPEST:
        return "…"
    if isinstance(value, dict):
        items = list(value.items())[:most]
        return {str(name)[:MOST_TEXT]: plain(item, most, depth + 1) for name, item in items}
    if isinstance(value, list | tuple):
        found = [plain(item, most, depth + 1) for item in value[:most]]
        if len(value) > most:
            found.append(f"… (+{len(value) - most})")
        return found
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, bool | int) else str(value)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
