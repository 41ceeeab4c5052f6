"""Watch it learn: evaluate a model on questions it never trained on, train it, evaluate it again, show what changed.

    make demo                                                     # seed 1, the bundled model, a new folder in runs/
    make demo SEED=2
    .venv/bin/python -m evaluation.demo --run-dir runs/NAME        # goes on with one that was interrupted
    .venv/bin/python -m evaluation.demo --collect runs/A runs/B    # one table of seeds; --picture FILE draws

Every part is one of the project's own commands, printed before it runs; its results lie in the folder's `before/`,
`train/` and `after/`. `demo.json` and `demo.png` sum them up (docs/learning.md). Nothing imports this program.
Exit codes: 0 done, 1 a part failed, 2 wrong usage, 130 interrupted. A part that is done is not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common.settings import ROOT

PLAN, PARTS = "plan.json", "parts.jsonl"
DEFAULT_SEED = 1
SECONDS_TO_STOP = 90.0  # training hands its servers back and writes its summary

Plan = dict[str, Any]
Command = Callable[[], list[str]]  # made only when the part is run: making one may put an unfinished folder aside


class UsageError(ValueError):
    """What was asked for cannot be done; one line that says what to do."""


class PartError(RuntimeError):
    """A part ended with the exit code `code`; what it said stands above on the screen."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} ended with exit code {code}; what it said stands above")
        self.code = code


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evaluation.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help=f"order of the training questions; default: {DEFAULT_SEED}")
    parser.add_argument("--model", help="model to begin with; default: the bundled one")
    parser.add_argument("--n", type=int, help="test questions; default: all of data/test.parquet")
    parser.add_argument("--run-dir", type=Path, help="default: runs/demo-seed<N>-<time>; an old one goes on")
    parser.add_argument("--collect", type=Path, nargs="+", metavar="DIR", help="run nothing, show these finished demos")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="with --collect: draw them into a new PNG")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="for train_sql_agent.py")
    arguments = parser.parse_intermixed_args(argv)
    wrong = [text for text in arguments.overrides if "=" not in text]
    if wrong:
        parser.error(f"{wrong[0]!r} is neither a flag nor key=value")
    if arguments.n is not None and arguments.n < 2:
        parser.error(f"--n is {arguments.n}; an interval needs at least 2 questions")
    if arguments.seed is not None and arguments.seed < 0:
        parser.error(f"--seed is {arguments.seed}; it must be at least 0")
    if arguments.picture and not arguments.collect:
        parser.error("--picture goes with --collect; a demo draws its own demo.png")
    return arguments


def demo(arguments: argparse.Namespace, argv: Sequence[str]) -> None:
    """Run what is not done yet, then write and show the result.

    Raises:
        UsageError: the folder holds another demo, or something else.
        PartError: a part failed.
    """
    from evaluation.demo_report import AFTER, BEFORE, TRAIN

    folder, plan = open_folder(arguments, argv)
    questions = [] if plan["n"] is None else ["--n", str(plan["n"])]

    def evaluation(side: str, model: str) -> Command:
        return lambda: ["-m", "evaluation.evaluate", "--model", model, "--out", str(folder / side), *questions]

    run_part(folder, BEFORE, evaluation(BEFORE, plan["model"]))
    run_part(folder, TRAIN, lambda: training_command(folder / TRAIN, plan))
    run_part(folder, AFTER, evaluation(AFTER, str(folder / TRAIN)))
    finish(folder, plan)


def open_folder(arguments: argparse.Namespace, argv: Sequence[str]) -> tuple[Path, Plan]:
    """A new demo's folder with its plan written into it, or the folder and plan of the one that is continued.

    Raises:
        UsageError: --run-dir holds a demo of other flags, or no demo.
    """
    from common.jsonl import write_text
    from evaluation.demo_report import commit

    given = {"seed": arguments.seed, "model": arguments.model and _path(arguments.model), "n": arguments.n}
    given |= {"overrides": arguments.overrides or None}
    seed = DEFAULT_SEED if arguments.seed is None else arguments.seed
    folder = (arguments.run_dir or ROOT / "runs" / f"demo-seed{seed}-{time.strftime('%Y%m%d-%H%M%S')}").resolve()
    if (folder / PLAN).is_file():
        return folder, continued(folder, given)
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"--run-dir {folder} is not empty and holds no demo; choose another")
    plan = {
        "seed": seed,
        "model": given["model"] or _bundled(),
        "n": arguments.n,
        "overrides": arguments.overrides,
        "commit": commit(),
        "command": shlex.join([".venv/bin/python", "-m", "evaluation.demo", *argv]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / PLAN, json.dumps(plan, ensure_ascii=False, indent=1) + "\n", force=False)
    return folder, plan


def _path(model: str) -> str:
    """A folder by its whole path, or from the repository where it lies in it, as parts run there; a hub id as it is."""
    folder = Path(model).resolve()
    if not folder.is_dir():
        return model
    return str(folder.relative_to(ROOT)) if folder.is_relative_to(ROOT) else str(folder)


def _bundled() -> str:
    from sql_agent.config import TINY_MODEL

    return _path(str(TINY_MODEL))


def continued(folder: Path, given: dict[str, Any]) -> Plan:
    """The plan a folder was begun with; flags that are `given` (not None) must be those of the plan.

    Raises:
        UsageError: they are not.
    """
    plan = dict(json.loads((folder / PLAN).read_text(encoding="utf-8")))
    for name, value in given.items():
        if value is not None and value != plan[name]:
            raise UsageError(f"{folder} was begun with {name} {plan[name]!r}, not {value!r}; choose another --run-dir")
    return plan


def training_command(folder: Path, plan: Plan) -> list[str]:
    """The training command of a plan; an unfinished training is resumed, or put aside where it has no checkpoint."""
    from training.checkpoints import latest_checkpoint

    command = ["train_sql_agent.py", "--ci", "--model", plan["model"], "--run-dir", str(folder)]
    command += [f"data.seed={plan['seed']}", *plan["overrides"]]
    if latest_checkpoint(folder):
        return [*command, "--resume", "latest"]
    if folder.exists():
        number = 1
        while (aside := folder.with_name(f"{folder.name}.unfinished-{number}")).exists():
            number += 1
        print(f"demo: an unfinished training without a checkpoint is now {aside.name}", file=sys.stderr, flush=True)
        folder.rename(aside)
    return command


def run_part(folder: Path, name: str, make_command: Command) -> None:
    """Run a part as a program of its own and note how long it took; nothing where it is done already.

    Raises:
        PartError: it did not end with 0.
        KeyboardInterrupt: Ctrl-C or SIGTERM; the part was told, and has ended.
    """
    if name in done_parts(folder):
        print(f"demo: {name} is done", file=sys.stderr, flush=True)
        return
    command = make_command()
    print(f"\ndemo: {name}\n$ {shlex.join(['.venv/bin/python', *command])}", file=sys.stderr, flush=True)
    start, code = time.monotonic(), 130
    # A session of its own: Ctrl-C reaches it once, from here, and not a second time from the terminal.
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, start_new_session=True)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        stop(process)
        raise
    finally:
        note = {"part": name, "seconds": round(time.monotonic() - start, 2), "exit_code": code}
        with (folder / PARTS).open("a", encoding="utf-8") as parts:
            parts.write(json.dumps(note) + "\n")
    if code:
        raise PartError(name, code)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a part and wait for it, killing it after SECONDS_TO_STOP or at a second Ctrl-C."""
    print("demo: stopping", file=sys.stderr, flush=True)
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C in its own terminal would do
    with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        process.wait(SECONDS_TO_STOP)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def done_parts(folder: Path) -> set[str]:
    """Names of the parts that ended with 0."""
    return {note["part"] for note in notes(folder) if note["exit_code"] == 0}


def notes(folder: Path) -> list[dict[str, Any]]:
    """What was noted of every part that ran, interrupted ones included."""
    from common.jsonl import read_jsonl

    return [note for _, note in read_jsonl(folder / PARTS)] if (folder / PARTS).exists() else []


def finish(folder: Path, plan: Plan) -> None:
    """Compare, write demo.json and demo.png unless they are there, and show the result."""
    from common.jsonl import write_text
    from evaluation.demo_picture import draw
    from evaluation.demo_report import AFTER, BEFORE, PICTURE, RESULT, build, read_result, show

    if not (folder / RESULT).exists():
        command = ["-m", "evaluation.compare", str(folder / BEFORE), str(folder / AFTER), "--json"]
        compared = subprocess.run([sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if compared.returncode:
            raise PartError("compare", compared.returncode)
        facts = {name: plan[name] for name in ("seed", "model", "commit", "command")}
        seconds = sum(note["seconds"] for note in notes(folder))
        result = build(folder, json.loads(compared.stdout), facts | {"minutes": round(seconds / 60, 2)})
        draw([result], folder / PICTURE)
        write_text(folder / RESULT, json.dumps(result, ensure_ascii=False, indent=1) + "\n", force=False)
    show(read_result(folder))
    print(f"{folder / PICTURE}\n{folder}", flush=True)


def collect(folders: Sequence[Path], picture: Path | None) -> None:
    """Print finished demos as one Markdown table, and draw them.

    Raises:
        UsageError: a folder without a finished demo, or a picture that exists.
    """
    from evaluation.demo_picture import draw
    from evaluation.demo_report import collected, read_result

    if picture and picture.exists():
        raise UsageError(f"--picture {picture} exists; remove it, or give another name")
    results = [read_result(folder) for folder in folders]
    print("\n".join(collected(results)))
    if picture:
        draw(results, picture)


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = parse_arguments(argv)
    from common.jsonl import FileError
    from evaluation.results import ResultsError

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments.collect:
            collect(arguments.collect, arguments.picture)
        else:
            demo(arguments, argv)
    except (UsageError, ResultsError, FileError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except PartError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.code if error.code in (2, 130) else 1
    except OSError as error:
        print(f"demo: {error.strerror or error}: {error.filename}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; --run-dir with the same folder goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
