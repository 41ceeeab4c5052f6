"""How every program ends: one line on stderr and an exit code instead of a traceback.

0: done. 1: it failed. 2: wrong usage. 130: Ctrl-C. Errors that a user can cause or has to live with
derive from `UsageError` or `Failure`. Anything else is a fault of the program.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from traceback import FrameSummary, extract_tb, print_exception
from types import MappingProxyType
from typing import Any, NoReturn

from common.proxies import ask_directly
from common.startup import read_as_utf8

INTERRUPTED = 130
EMPTY = "it is empty; is a variable of the command not set?"
WRITTEN = ".venv/bin/python"  # how texts of this project write the Python that runs it
WRITTEN_ALONE = re.compile(rf"(?<![\w./-]){re.escape(WRITTEN)}")  # and no part of a longer path
# The words with which utils/installed.py was called, which this process alone was started for
CALLED = os.environ.pop("MEDICAL_AGENT_RL_CALLED", "")


class UsageError(ValueError):
    """The input cannot be used. The message says what was seen, what was expected and what to do."""

    exit_code = 2


class Failure(RuntimeError):
    """The work failed for another reason than bad input. Subclasses may set another exit code."""

    exit_code = 1


def python_here() -> str:
    """Return what a person in this folder types for this Python: `python`, or its path."""
    own = Path(sys.executable)
    found = shutil.which(own.name)
    if found and Path(found).parent == own.parent:
        return own.name
    with suppress(FileNotFoundError, ValueError):  # the folder was removed, or is another one
        return str(own.relative_to(Path.cwd()))
    return str(own)


def as_typed(text: str) -> str:
    """Return a text with its commands as they work here; they are written with .venv/bin/python."""
    return WRITTEN_ALONE.sub(lambda _: python_here(), text)


def own_lines(error: BaseException) -> list[FrameSummary]:
    """Return the lines in the folder of an agent, NAME_agent/, that led to an error."""
    return [line for line in extract_tb(error.__traceback__) if "_agent/" in line.filename]


def told(error: BaseException) -> str:
    """Return what was raised and where, in an agent's own code if it was there."""
    last = (own_lines(error) or extract_tb(error.__traceback__))[-1]
    where = f"{last.filename}, line {last.lineno}, in {last.name}"
    return f"{type(error).__name__}: {error} ({where})"


def run_command(program: str, body: Callable[[], int | None], afterwards: str = "") -> int:
    """Run a program's body and return the exit code. A body that returns None counts as 0.

    `afterwards` is added to the message of a failure or Ctrl-C, such as "nothing was written".
    """
    note = f"; {afterwards}" if afterwards else ""
    ask_directly()
    read_as_utf8()
    try:
        return body() or 0
    except (UsageError, Failure) as error:
        code = error.exit_code
        text = f"{error}{note if error.exit_code == Failure.exit_code else ''}"
    except argparse.ArgumentError as error:  # the flag of an agent has a command's name
        code = UsageError.exit_code
        text = f"{error}; give the agent's flag another name"
    except ModuleNotFoundError as error:
        if not error.name or find_spec(error.name.split(".")[0]) is not None:
            raise  # a part of an installed package is missing: installing again mends nothing
        code = UsageError.exit_code
        mended = "take the Python in .venv, or install the lock again: ./install.sh --repair"
        text = f"{sys.executable} lacks the package {error.name}; {mended}"
    except OSError as error:
        code = Failure.exit_code
        named = error.strerror and error.filename
        text = (f"{error.strerror}: {error.filename}" if named else str(error)) + note
    except KeyboardInterrupt:
        code = INTERRUPTED
        text = f"interrupted{note}"
    except (Exception, SystemExit) as error:
        # --help ends in argparse. An agent's own code that leaves has not done the work.
        asked = any(line.filename == argparse.__file__ for line in extract_tb(error.__traceback__))
        if asked or (isinstance(error, Exception) and not own_lines(error)):
            raise
        print_exception(error)
        code = Failure.exit_code
        text = f"{told(error)}{note}"
    print(f"{program}: {as_typed(text)}", file=sys.stderr)
    return code


def start(module: str, function: str, *arguments: Any) -> int:
    """Import a module and run its function as a program, both ended by Ctrl-C with one line."""

    def body() -> int | None:
        result: int | None = getattr(import_module(module), function)(*arguments)
        return result

    return run_command(Path(sys.argv[0]).name, body)


def undecoded(text: str) -> str:
    """Return what is wrong with a word whose bytes are not in the locale's encoding, "" for others.

    Python keeps such a byte as half of a surrogate pair, which no file of results can hold.
    """
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return ""
    encoding = sys.getfilesystemencoding()
    shown = os.fsencode(text).decode(encoding, "backslashreplace")
    return f"'{shown}' is not in {encoding.upper()}; rename it, as letters of English"


class Parser(argparse.ArgumentParser):
    """argparse that tells an error in one line, and refuses words that are not in the locale's encoding."""

    words: Sequence[str] = ()
    instead: Mapping[str, str] = MappingProxyType({})  # what to use for flags that do not exist

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.words = sys.argv[1:] if args is None else args
        for word in self.words:
            if problem := undecoded(word):
                self.error(problem)
        return super().parse_known_args(args, namespace)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if action.type is Path and not arg_string:  # it would be the current folder
            raise argparse.ArgumentError(action, EMPTY)
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        for flag in [word.split("=")[0] for word in self.words if word.startswith("--")]:
            known = flag in self._option_string_actions
            if self.allow_abbrev:
                known = any(name.startswith(flag) for name in self._option_string_actions)
            near = get_close_matches(flag, self._option_string_actions, 1)
            if flag in self.instead:
                message += f"; {self.instead[flag]}"
            elif near and not known:
                message += f"; did you mean {near[0]} by {flag}?"
        self.exit(2, as_typed(f"error: {message}; see {self.prog} --help\n"))


def new_parser(doc: str | None, **options: Any) -> argparse.ArgumentParser:
    """Return a parser whose --help begins with the docstring; commands are as typed here."""
    read_as_utf8()
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    started = f"-m {spec.name.removesuffix('.__main__')}" if spec is not None else sys.argv[0]
    written = f"{WRITTEN} {started}"  # the module or file behind `python`
    shown = (doc or "").replace(written, CALLED) if CALLED else doc or ""
    form = argparse.RawDescriptionHelpFormatter
    program = CALLED or as_typed(written)
    return Parser(description=as_typed(shown), prog=program, formatter_class=form, **options)


def number(
    kind: type[int] | type[float], accepts: Callable[[float], bool], expected: str
) -> Callable[[str], int | float]:
    """Return a type for argparse: a number that `accepts` takes. NaN is refused."""

    def parse(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not accepts(value):
            raise argparse.ArgumentTypeError(f"expected a number {expected}, got {text!r}")
        return value

    return parse


def filled(text: str) -> str:
    """Return a type for argparse: a text that is not empty, as of a variable that is not set."""
    if not text:
        raise argparse.ArgumentTypeError(EMPTY)
    return text


def positive(kind: type[int] | type[float]) -> Callable[[str], int | float]:
    """Return a type for argparse: a finite number above 0."""
    return number(kind, lambda value: 0 < value < float("inf"), "above 0")
