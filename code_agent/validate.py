"""Check the questions of a set: gold program and gold SQL run again and must give the gold answer.

    .venv/bin/python -m code_agent.validate ehr_demo
    .venv/bin/python -m code_agent.validate calculators --mode test
    .venv/bin/python -m code_agent.validate mimic_iii --data MedAgentGym/data/mimic_iii --mode test
    .venv/bin/python -m code_agent.validate ehr_demo --questions my_questions --data my_hospital

In MedAgentGym's sets every row's own answer must earn 1. Rows that cannot be played here are
counted by reason. Programs of bundled sets run without the sandbox, so use only files you trust.
Exit codes: 0 all are right, 1 some are not, 2 wrong usage.
"""

import argparse
import asyncio
import io
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from itertools import chain
from pathlib import Path

from code_agent.environment import CodeEnvironment
from code_agent.task import CodeTask
from code_agent.tasks import SETS
from code_agent.tasks.base import BUNDLED, MODES, TaskSet
from code_agent.tasks.gym_set import MedAgentGymSet
from common.command import Failure, UsageError, new_parser, run_command
from common.files import read_only_uri
from common.settings import load_settings
from common.terminal import watched
from episodes.episode import AgentError

DATABASE = "hospital.db"


def answer_by(name: str, task: CodeTask, folder: Path | None) -> str:
    """Return what a task's "program" or "SQL" answers. Raises whatever it raises."""
    if name == "program":
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile(task.program.replace("/data/", f"{folder}/"), "program", "exec"), {})
        return output.getvalue()
    address = read_only_uri(Path(f"{folder}/{DATABASE}"))
    with closing(sqlite3.connect(address, uri=True)) as database:
        rows = database.execute(task.sql).fetchall()
    is_table = task.gold is not None and task.gold.kind == "table"
    return json.dumps(rows if is_table else [*chain.from_iterable(rows)])


def problems(tasks: TaskSet, task: CodeTask, index: int) -> Iterator[str]:
    """Yield what is wrong with a task's own answers, in words."""
    if isinstance(tasks, MedAgentGymSet):
        answer = tasks.rows[index].get(tasks.known.get("answer", ""))
        if answer is not None and tasks.score(task, str(answer)) != 1:
            yield f"{task.id}: its own answer {str(answer)[:80]!r} does not earn 1"
        return
    for name in ("program", "SQL") if task.sql else ("program",):
        try:
            answer = answer_by(name, task, tasks.folder)
        except Exception as error:  # whatever a program raises is its problem
            yield f"{task.id}: the gold {name} raises {type(error).__name__}: {error}"
            continue
        if tasks.score(task, answer) != 1:
            gives = f"{task.id}: the gold {name} gives {answer.strip()[:80]}"
            yield f"{gives}, the gold is {task.reference[:80]}"


def validate(options: argparse.Namespace) -> None:
    """Check each mode and print its problems. Raises Failure: there are some."""
    modes = options.mode or (MODES if options.set in BUNDLED else ("test",))
    wrong = sum(check(options, mode) for mode in modes)
    if wrong:
        raise Failure(
            f"{wrong} problems; the rows are not in the set's form, or the "
            "questions were built from other tables than those they are asked about"
        )


def check(options: argparse.Namespace, mode: str) -> int:
    """Print wrong rows and why others cannot be played. Return how many are wrong."""
    own = {"questions": options.questions} if options.questions else {}
    if own and options.set not in BUNDLED:
        raise UsageError(f"--questions is for {', '.join(BUNDLED)}; {options.set} has its own")
    tasks = SETS[options.set](options.data, mode, **own)
    wrong: list[str] = []
    unusable = Counter[str]()
    with closing(CodeEnvironment(load_settings(), {}, {options.set: tasks})) as environment:
        for index in watched(range(len(tasks)), mode, "rows"):
            try:
                task = tasks.task(index)
            except AgentError as error:
                wrong.append(str(error))
                continue
            wrong += problems(tasks, task, index)
            unusable[asyncio.run(environment.why_unusable(task))] += 1
    del unusable[""]
    lines = [*wrong, *filter(None, [tasks.missing()])]
    lines += [f"{count} rows cannot be played: {why}" for why, count in unusable.items()]
    print("\n".join([*lines, f"{mode}: {len(tasks)} rows, {len(wrong)} problems"]))
    return len(wrong)


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("set", choices=sorted(SETS))
    which = "this one; default: all, of MedAgentGym's test"
    add("--mode", action="append", choices=MODES, help=which)
    add("--questions", type=Path, metavar="DIR", help="folder with a parquet file of each mode")
    add("--data", type=Path, metavar="DIR", help="folder of the tables")
    options = parser.parse_args(arguments)
    return run_command("validate", lambda: validate(options))


if __name__ == "__main__":
    sys.exit(main())
