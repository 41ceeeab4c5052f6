"""Prepare rows for training: draft missing answers, check gold, and prove that the judge tells
honest answers from dishonest ones.

    python -m training.prepare sql                                 # prepares, keeps the result, says where
    python -m training.prepare sql --train-file my.parquet         # flags as for training
    prepared = prepare(agent, files, rows, settings, options)      # in a program: what is kept, or made

The result is one file for two data files, `outputs/prepared/<agent>-<key>.json`. It holds digests
of what it depends on (`training.setup.fingerprint`); a training command reads it, and prepares
where it is missing or out of date. Nothing is kept where no digest sees a change: with a judge that
is a model, and with settings that name an address elsewhere. Exit codes: 0 prepared, 1 the judge
cannot be trained on or does not answer, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from common.command import Failure, new_parser, run_command
from common.jsonl import write_text
from common.settings import ROOT, Settings, load_settings
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent, Environment, Options, Row
from episodes.episode import Task
from episodes.judge_probe import check_judge, problem_of
from episodes.turns import with_turns
from training.serve import serve_environment
from training.setup.fingerprint import elsewhere, fingerprints

FOLDER = ROOT / "outputs" / "prepared"

Rows = dict[str, list[Row]]


@dataclass(frozen=True)
class Prepared:
    """The result of `prepare`.

    rows: by "train" and "val", with drafted answers. notes: warnings about them. problem: what is
    wrong with the judge, None if nothing is.
    """

    rows: Rows
    notes: Sequence[str]
    problem: str | None = None


def prepare(
    agent: Agent,
    files: Mapping[str, Path | str],
    rows: Rows,
    settings: Settings,
    options: Options,
    environment: Environment,
) -> Prepared:
    """Return the prepared rows of these files: those that are kept, or new ones, which are then
    kept. Either way what episodes need is asked for a sign of life.

    Raises AgentError: the rows cannot be trained on; Failure: what episodes need does not answer,
    or the judge pays dishonest answers like honest ones and JUDGE_CHECK is on.
    """
    path = kept_path(agent, files)
    unseen = out_of_sight(settings, options, environment)
    parts = fingerprints(agent, rows, settings, options) if not unseen else {}
    reason = f"{unseen}, where no digest sees a change" if unseen else out_of_date(path, parts)
    if reason:
        print(f"preparing rows and judge: {reason}", flush=True)
        prepared = make(agent, rows, settings, options, environment)
        if not unseen:
            keep(path, parts, prepared)
    else:
        print(f"prepared before: {path} is up to date", flush=True)
        asyncio.run(environment.check())
        prepared = read(path)
        show(prepared.notes)
    if prepared.problem:
        text = f"WARNING: the judge cannot be trained on, and JUDGE_CHECK=0: {prepared.problem}"
        print(text, file=sys.stderr, flush=True)
    return prepared


def make(
    agent: Agent, rows: Rows, settings: Settings, options: Options, environment: Environment
) -> Prepared:
    """Return rows with drafted answers, checked by the agent, and a judge that was asked about some
    of them.

    Raises AgentError and Failure as `prepare` does.
    """
    prepared = complete(agent, rows, settings, options)
    tasks = [agent.task(row, settings) for row in prepared.rows["train"]]
    problem = asyncio.run(judge_problem(environment, tasks))
    if problem and settings.judge_check:
        raise Failure(
            "the judge cannot be trained on: "
            f"{problem}\n{environment.judging.help}; JUDGE_CHECK=0 goes on"
        )
    return Prepared(prepared.rows, prepared.notes, problem)


async def judge_problem(environment: Environment, tasks: Sequence[Task]) -> str | None:
    """Return what is wrong with the judge, of each agent where several are trained together."""
    by_agent: dict[str, list[Task]] = {}
    for task in tasks:
        by_agent.setdefault(task.agent, []).append(task)
    found = [problem_of(await check_judge(environment, own)) for own in by_agent.values()]
    return "\n".join(problem for problem in found if problem) or None


def complete(
    agent: Agent, rows: Rows, settings: Settings, options: Options, plays: bool = True
) -> Prepared:
    """Return the rows with drafted answers, checked by the agent, and show its notes; no judge is
    asked.

    `plays` is False where episodes are played elsewhere: what they need may not be at hand.
    """
    notes = list(agent.check(rows, settings, plays))
    for name, part in rows.items():
        tasks = [agent.task(row, settings) for row in part]
        notes += [f"{name}: {note}" for note in agent.flags.check(tasks, options)]
    show(notes)
    return Prepared(rows, notes)


def show(notes: Sequence[str]) -> None:
    for note in notes:
        print(note, flush=True)


def out_of_sight(settings: Settings, options: Options, environment: Environment) -> str:
    """Return what the result depends on that no digest sees, "" if there is nothing."""
    named = ", ".join(name.upper() for name in elsewhere(settings, options))
    if named:
        return f"{named} lies elsewhere"
    return "the judge is a model" if environment.judging.paid else ""


def kept_path(agent: Agent, files: Mapping[str, Path | str]) -> Path:
    """Return where the result for these files is kept."""
    names = json.dumps([str(Path(files[name]).resolve()) for name in sorted(files)])
    return FOLDER / f"{agent.name}-{sha256(names.encode()).hexdigest()[:8]}.json"


def out_of_date(path: Path, parts: Mapping[str, str]) -> str:
    """Return why the kept result cannot be used, "" if it can."""
    if not path.is_file():
        return f"{path} is not there"
    try:
        found = dict(json.loads(path.read_text(encoding="utf-8"))["depends_on"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"{path} cannot be read"
    changed = [name for name, digest in parts.items() if found.get(name) != digest]
    return f"{path} is out of date ({', '.join(changed)} changed)" if changed else ""


def keep(path: Path, parts: Mapping[str, str], prepared: Prepared) -> None:
    """Write the result; where that is impossible, say so, since the run has no need of the file."""
    text = json.dumps({"depends_on": dict(parts), **asdict(prepared)}, ensure_ascii=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text, force=True)
    except OSError as error:
        print(f"the result is not kept: {path}: {error.strerror}", file=sys.stderr, flush=True)


def read(path: Path) -> Prepared:
    """Return the kept result."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Prepared(found["rows"], found["notes"], found["problem"])


def parse_arguments(argv: Sequence[str] | None) -> tuple[Agent, argparse.Namespace]:
    """Return the agent and the flags, its own among them."""
    parser = new_parser(__doc__, prog="python -m training.prepare")
    registry.add_agent(parser, argv)
    for split in ("train", "val"):
        what = f"default: the agent's {split} file"
        parser.add_argument(f"--{split}-file", type=Path, metavar="FILE", help=what)
    arguments = parser.parse_args(argv)
    return registry.get(arguments.agent), arguments


def run(agent: Agent, arguments: argparse.Namespace) -> int:
    """Prepare the rows of the command line and return the exit code."""
    options = registry.own_options(agent, arguments)
    settings = with_turns(agent, load_settings()).under(options)
    given = {"train": arguments.train_file, "val": arguments.val_file}
    files = {name: path or agent.splits[name] for name, path in given.items()}
    rows = {name: agent.rows(path) for name, path in files.items()}
    with (
        serve_environment(agent, settings, options, ROOT / "outputs" / "prepare") as served,
        closing(agent.open(settings, served)) as environment,
    ):
        prepare(agent, files, rows, settings, options, environment)
    print("the rows can be trained on")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    stop_in_order()
    return run_command("prepare", lambda: run(*parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
