"""Judge what is not a single value, by running programs in the episode's sandbox."""

import ast
import builtins
import csv
import io
import secrets
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from code_agent.actions import OK, EpisodeContext, doing_nothing, nodes_of, program_of, run_in
from code_agent.task import CodeTask
from common.toml import table_beside
from episodes.outcomes import EpisodeError

CHUNK = 36_000  # bytes of a file that one run prints. Base64 of a multiple of three can be joined
MOST_CHUNKS = 125
ROW = 500  # bytes that a row of predictions may have
PROGRAMS = table_beside(__file__)
VALUES = Path(__file__).with_name("values.py").read_text(encoding="utf-8")
PREDICTIONS = "/scratch/predictions.csv"
OTHERWISE = "the task's own program prints something else each time"


@dataclass(frozen=True)
class Handed:
    """The answer as text, and the last program that ran without error."""

    answer: str
    program: str = ""


async def why_untelling(task: CodeTask, context: EpisodeContext) -> str:
    """Return why a task's own program proves nothing, by its output or tests, or ""."""
    if not task.context:
        apart = replace(context, episode=f"{context.episode}/own")
        try:
            ran = await run_in(apart, task.program)
            passed = ran.status == OK and await passes_tests(task.reference, apart)
        finally:
            await apart.sandbox.end(apart.episode)
        return "" if passed else "its own program fails here, or its values do not pass the tests"
    printed = [await _alone(task.program, context) for _ in range(2)]
    if not all(output and output.strip() for output in printed):
        return "its own program fails here, or prints nothing"
    if printed[0] != printed[1]:
        return OTHERWISE
    stub = doing_nothing(task.reference)
    if stub and await _alone(program_of(stub, context), context) == printed[0]:
        return "a function that does nothing makes the program print the same"
    return ""


async def prints_the_same(program: str, code: str, context: EpisodeContext) -> bool:
    """Return whether the policy's code prints in its frame what the task's own program prints."""
    wanted = await _alone(program, context)
    if wanted is None or not wanted.strip():
        raise EpisodeError(
            "task_unusable", "the task's own program does not run here, or prints nothing"
        )
    if not code:
        return False
    found = await _alone(program_of(code, context), context)
    if found is not None and found.split() == wanted.split():
        return True
    if await _alone(program, context) != wanted:  # no answer could print the same
        raise EpisodeError("task_unusable", OTHERWISE)
    return False


async def passes_tests(tests: str, context: EpisodeContext) -> bool:
    """Return whether tests pass on the values that the policy's programs left.

    The tests run in an interpreter that runs no line of these programs and gets their values as
    data (`values.py`), so the programs never see them. After the last test it prints a word that
    only this call knows.
    """
    file = f"/scratch/.values-{secrets.token_hex(8)}"
    passed = secrets.token_hex(16)
    names, reads = names_in(tests)
    asked = (names, reads, file)
    saved = await run_in(context, PROGRAMS["save"].format(values=VALUES, asked=asked))
    kept = await _read(file, context) if saved.status == OK else ""
    if not kept:
        return False
    known = {"values": VALUES, "names": names, "kept": kept}
    program = PROGRAMS["tests"].format(**known, tests=tests, passed=passed)
    printed = (await _alone(program, context) or "").splitlines()
    return printed.count(passed) == 1 and printed[-1] == passed


def names_in(tests: str) -> tuple[list[str], list[str]]:
    """Return the names and attributes that tests read, none if they do not parse."""
    nodes = nodes_of(tests)
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    own = {*dir(builtins), "np", "pd"}
    return sorted(names - own), sorted(name for name in read if not name.startswith("_"))


Labels = Mapping[tuple[str, ...], str]


async def share_predicted(wanted: Labels, columns: Sequence[str], context: EpisodeContext) -> float:
    """Return the share of labels that PREDICTIONS has right. A missing one is wrong.

    columns: of its header, the label last. Where the header has other names, columns count by place.
    """
    found = {}
    try:
        most = max(MOST_CHUNKS, len(wanted) * ROW // CHUNK)
        kept = await _read(PREDICTIONS, context, most)
        text = b64decode(kept).decode("utf-8-sig", "replace")
        rows = csv.reader(io.StringIO(text))
        names = [name.strip() for name in next(rows, [])]
        if not {*columns} <= {*names}:
            names = [*columns]
        places = [names.index(name) for name in columns]
        for row in rows:
            if len(row) == len(names):
                *case, label = [row[at] for at in places]
                found[tuple(map(_number, case))] = _label(label)
    except (ValueError, csv.Error):  # the program controls what its interpreter prints
        return 0.0
    right = sum(found.get(key) == label for key, label in wanted.items())
    return right / len(wanted) if wanted else 0.0


def read_labels(path: Path, ids: tuple[str, ...], column: str) -> Labels:
    """Return the labels of a CSV file by what the columns `ids` name."""
    labels = {}
    with open(path, newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file, restval=""):
            case = tuple(_number(row[name]) for name in ids)
            labels[case] = _label(row[column])
    return labels


async def _alone(program: str, context: EpisodeContext) -> str | None:
    apart = replace(context, episode=f"{context.episode}/check {secrets.token_hex(8)}")
    try:
        run = await run_in(apart, program)
    finally:
        await apart.sandbox.end(apart.episode)
    return run.printed if run.status == OK else None


async def _read(name: str, context: EpisodeContext, most: int = MOST_CHUNKS) -> str:
    """Return a file of the episode in base64, or "" if it does not exist. It is read in pieces."""
    parts = []
    for at in range(most):
        program = PROGRAMS["read"].format(name=name, place=at * CHUNK, size=CHUNK)
        run = await run_in(context, program)
        if run.status != OK or not run.printed:
            break
        parts.append(run.printed)
    return "".join(parts)


def _number(text: str) -> str:
    """Return an identifier, which some files write as `tensor(7)` or 7.0."""
    return text.strip().removeprefix("tensor(").removesuffix(")").removesuffix(".0")


def _label(text: str) -> str:
    """Return a label in one form: truth values and whole numbers are written in several ways."""
    plain = {"True": "1", "False": "0"}.get(text.strip(), text.strip())
    return plain.removesuffix(".0")
