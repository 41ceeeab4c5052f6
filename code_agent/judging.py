"""Grade answers that are not single values, from 0 to 1, by running programs in the sandbox."""

import ast
import builtins
import csv
import io
import itertools
import secrets
import tomllib
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from code_agent.actions import OK, EpisodeContext, program_of, run_in
from episodes.outcomes import EpisodeError

CHUNK = 36_000  # bytes of a file that one run prints. Base64 of a multiple of three can be joined
MOST_CHUNKS = 125
PROGRAMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
VALUES = Path(__file__).with_name("values.py").read_text(encoding="utf-8")
_fresh = itertools.count()


@dataclass(frozen=True)
class Handed:
    """The answer as text, and the last program that ran without error."""

    answer: str
    program: str = ""


class Check(Protocol):
    async def worth(self, handed: Handed, context: EpisodeContext) -> float:
        """Return a value from 0 to 1. Raises EpisodeError if it cannot be determined here."""
        ...


@dataclass(frozen=True)
class ByOutput:
    """Right if the program, put into its context, prints what the gold program prints."""

    program: str

    async def problem(self, stub: str, context: EpisodeContext) -> str:
        """Return why the gold's output tells nothing, or "". stub: with empty functions."""
        printed = [await _alone(self.program, context) for _ in range(2)]
        if not all(output and output.strip() for output in printed):
            return "its own program fails here, or prints nothing"
        if printed[0] != printed[1]:
            return "its own program prints something else each time"
        if stub and await _alone(stub, context) == printed[0]:
            return "a function that does nothing makes the program print the same"
        return ""

    async def worth(self, handed: Handed, context: EpisodeContext) -> float:
        wanted = await _alone(self.program, context)
        if wanted is None or not wanted.strip():
            raise EpisodeError(
                "task_unusable", "the task's own program does not run here, or prints nothing"
            )
        if not handed.program:
            return 0.0
        found = await _alone(program_of(handed.program, context), context)
        return float(found is not None and found.split() == wanted.split())


@dataclass(frozen=True)
class ByTests:
    """Right if the tests pass on the values that the program left.

    The tests run in an interpreter that runs no line of the program and gets its values as data
    (`values.py`), so the program never sees them. After the last test it prints a word that only
    this call knows.
    """

    tests: str

    async def worth(self, handed: Handed, context: EpisodeContext) -> float:
        file = f"/scratch/.values-{secrets.token_hex(8)}"
        passed = secrets.token_hex(16)
        names, reads = names_in(self.tests)
        asked = (names, reads, file)
        saved = await run_in(context, PROGRAMS["save"].format(values=VALUES, asked=asked))
        kept = await _read(file, context) if saved.status == OK else ""
        if not kept:
            return 0.0
        known = {"values": VALUES, "names": names, "kept": kept}
        program = PROGRAMS["tests"].format(**known, tests=self.tests, passed=passed)
        printed = (await _alone(program, context) or "").splitlines()
        return float(printed.count(passed) == 1 and printed[-1] == passed)


def names_in(tests: str) -> tuple[list[str], list[str]]:
    """Return the names and attributes that tests read. Raises EpisodeError: they do not parse."""
    try:
        nodes = list(ast.walk(ast.parse(tests)))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise EpisodeError(
            "task_unusable", f"the task's own tests are no program: {error}"
        ) from None
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    own = {*dir(builtins), "np", "pd"}
    return sorted(names - own), sorted(name for name in read if not name.startswith("_"))


@dataclass(frozen=True)
class ByPredictions:
    """The share of right labels in /scratch/predictions.csv. A missing label is wrong.

    labels: a CSV file outside the sandbox. ids: the columns that name a case, in the same order in
    both files. label: the column of the label.
    """

    labels: Path
    ids: tuple[str, ...]
    label: str

    async def worth(self, handed: Handed, context: EpisodeContext) -> float:
        try:
            text = b64decode(await _read("/scratch/predictions.csv", context)).decode(
                "utf-8", "replace"
            )
            lines = list(csv.reader(io.StringIO(text)))[1:]
        except (ValueError, csv.Error):  # the program controls what its interpreter prints
            return 0.0
        wanted = self._wanted()
        size = len(self.ids)
        found = {}
        for row in lines:
            if len(row) == size + 1:
                found[tuple(map(_number, row[:size]))] = _label(row[size])
        right = sum(found.get(key) == label for key, label in wanted.items())
        return right / len(wanted) if wanted else 0.0

    def commonest(self) -> float:
        """Return the score of always predicting the commonest label, which must not be a success."""
        labels = Counter(self._wanted().values())
        return max(labels.values(), default=0) / max(1, labels.total())

    def _wanted(self) -> dict[tuple[str, ...], str]:
        wanted = {}
        with open(self.labels, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                case = tuple(_number(row[name]) for name in self.ids)
                wanted[case] = _label(row[self.label])
        return wanted


async def _alone(program: str, context: EpisodeContext) -> str | None:
    apart = f"/check {next(_fresh)}"
    run = await run_in(context, program, apart=apart)
    await context.sandbox.end(f"{context.episode}{apart}")
    return run.printed if run.status == OK else None


async def _read(name: str, context: EpisodeContext) -> str:
    """Return a file of the episode in base64, or "" if it does not exist. It is read in pieces."""
    parts = []
    for at in range(MOST_CHUNKS):
        run = await run_in(
            context, PROGRAMS["read"].format(name=name, place=at * CHUNK, size=CHUNK)
        )
        if run.status != OK or not run.printed:
            break
        parts.append(run.printed)
    return "".join(parts)


def _number(text: str) -> str:
    """Return an identifier, which some files write as `tensor(7)`."""
    text = text.strip()
    return text.removeprefix("tensor(").removesuffix(")")


def _label(text: str) -> str:
    """Return a label in one form: truth values and whole numbers are written in several ways."""
    plain = {"True": "1", "False": "0"}.get(text.strip(), text.strip())
    return plain.removesuffix(".0")
