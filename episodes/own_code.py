"""What an agent's own code raises, or returns amiss, in one line that names the function."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from traceback import extract_tb
from types import UnionType
from typing import Any, get_origin

from common.command import Failure, UsageError
from episodes.episode import AgentError, Task
from episodes.outcomes import EpisodeError

# `play` is awaited in play_and_score.py, and callers of the others bear what they raise
LEFT = ("play", "asked", "failure", "shown")


class AgentFault(Failure):
    """The agent's own code raised. The message names the function, and the row or file."""


@contextmanager
def own_code(owner: object, function: str, at: str) -> Iterator[None]:
    """Turn what a function of the agent's own raises, SystemExit too, into an AgentFault."""
    try:
        yield
    except (UsageError, Failure, EpisodeError, TimeoutError):
        raise
    except (Exception, SystemExit) as error:
        file = getattr(sys.modules[type(owner).__module__], "__file__", None) or ""
        what = told(error, Path(file).parent)
        raise AgentFault(f"{type(owner).__name__}.{function} failed{at}: {what}") from error


def told(error: BaseException, folder: Path) -> str:
    """Return what was raised, and the last line in files of the folder that led there, if any."""
    where = ""
    for frame in extract_tb(error.__traceback__):
        if Path(frame.filename).resolve().is_relative_to(folder):
            where = f" ({frame.filename}, line {frame.lineno})"
    return f"{type(error).__name__}: {error}{where}"


def guard(own: type, contract: type) -> None:
    """Let the contract's functions that a class brings raise AgentFault, for a wrong result too."""
    for name, function in dict(vars(own)).items():
        promised = vars(contract).get(name)
        if name not in LEFT and inspect.isfunction(function) and inspect.isfunction(promised):
            setattr(own, name, _guarded(function, promised))


def _guarded(function: Callable[..., Any], promised: Callable[..., Any]) -> Callable[..., Any]:
    name = promised.__name__
    kind = inspect.get_annotations(promised)["return"]

    @wraps(function)
    def plain(self: object, *given: Any, **named: Any) -> Any:
        with own_code(self, name, _at(given)):
            result = _checked(function(self, *given, **named), kind)
            if name == "rows" and not result:
                raise AgentError(f"there are no rows{_at(given)}")
            return result

    @wraps(function)
    async def awaited(self: object, *given: Any, **named: Any) -> Any:
        with own_code(self, name, _at(given)):
            return _checked(await function(self, *given, **named), kind)

    return awaited if inspect.iscoroutinefunction(promised) else plain


def _at(given: tuple[Any, ...]) -> str:
    first = given[0] if given else None
    if isinstance(first, Task):
        return f" at task {first.id}"
    if isinstance(first, dict) and "id" in first:
        return f" at row {first['id']}"
    return f" at {first}" if isinstance(first, Path) else ""


def _checked(result: Any, kind: Any) -> Any:
    """Return the result, as a list where that is promised. Raises TypeError: of another kind."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("expected def, got async def")
    if get_origin(kind) is list:
        return result if isinstance(result, list) else list(result)
    outer = kind if isinstance(kind, UnionType) else get_origin(kind) or kind
    if outer is not None and not isinstance(result, Mapping if outer is dict else outer):
        expected = getattr(outer, "__name__", outer)
        raise TypeError(f"expected {expected}, got {repr(result)[:80]}")
    return result
