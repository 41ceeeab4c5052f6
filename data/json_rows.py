"""Rows of JSON files: an object a line, one in memory, or the objects of lists at any depth."""

import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import partial
from itertools import starmap
from pathlib import Path
from reprlib import repr as shortly
from typing import IO, Any

import ijson

from data.records import PIECE, Record, as_record

LINES = (".jsonl", ".ndjson")
DEEPEST = 100  # levels of a JSON list
SHOWN = 60  # characters of a bad line in a message

Rows = Callable[[], Iterator[Record]]


class Object(dict[str, Any]):
    """An object of JSON. Of a key that it has twice the parsers would keep the last value only."""

    def __init__(self, pairs: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        for key, value in pairs:
            self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        # ijson fills a list or an object after it stands here: two of them may not be equal
        if key in self and (self[key] != value or isinstance(value, list | dict)):
            raise ValueError(f"{key!r} is twice in an object, first as {shortly(self[key])}")
        super().__setitem__(key, value)


def json_tables(path: Path, encoding: str) -> dict[str, Rows]:
    """Return what reads the rows of each list of objects, by its place, such as "data.drugs".

    The place is "" where the file is one list, has an object a line, or is `whole`. Raises
    ValueError: it is not JSON. The message names the line.
    """
    with open_text(path, encoding) as file:
        if _are_lines(file, path.suffix.lower() in LINES):
            return {"": partial(_lines_of, path, encoding)}
        file.seek(0)
        held = _held(file)
    lists = _lists_in(held) or {"": _rows_of(held)}
    return {place: partial(_records, rows) for place, rows in lists.items()}


def whole(path: Path, encoding: str) -> Rows:
    """Return what reads one object as rows: the objects it holds, its lists as columns, or itself."""
    with open_text(path, encoding) as file:
        return partial(_records, _rows_of(_held(file)))


def _lines_of(path: Path, encoding: str) -> Iterator[Record]:
    with open_text(path, encoding) as file:
        yield from line_records(file)


def _records(rows: list[Any]) -> Iterator[Record]:
    return starmap(as_record, enumerate(rows, start=1))


def _held(file: IO[str]) -> Any:
    text = file.read()
    try:
        return json.loads(text, object_pairs_hook=Object)
    except RecursionError:
        raise ValueError("lists and objects are nested too deep") from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise ValueError(
                f"line {error.lineno} begins another JSON text; write one list of all"
            ) from None
        line = "".join(text.splitlines()[error.lineno - 1 : error.lineno])
        raise ValueError(
            f"no JSON in line {error.lineno} ({error.msg}): {line[:SHOWN]!r}"
        ) from None


def open_text(path: Path, encoding: str) -> IO[str]:
    return path.open(encoding=encoding, newline="")


def _are_lines(file: IO[str], are_expected: bool) -> bool:
    """Return whether a text has an object a line. Where lines are expected, "[" begins a list."""
    filled = filter(str.strip, file)
    first = next(filled, "")
    if first.lstrip().startswith("["):
        return False
    if are_expected:
        return True
    try:
        is_next = next(filled, "").lstrip().startswith("{")  # else a line may be the whole file
        return is_next and isinstance(_of_line(first), dict)
    except (json.JSONDecodeError, RecursionError):
        return False


def _lists_in(held: Any, place: str = "") -> dict[str, list[Any]]:
    """Return all lists of objects that are not inside other lists, by their place."""
    if isinstance(held, list):
        return {place: held} if any(isinstance(value, dict) for value in held) else {}
    found: dict[str, list[Any]] = {}
    for key, value in held.items() if isinstance(held, dict) else ():
        for there, rows in _lists_in(value, f"{place}.{key}" if place else key).items():
            found[there] = found.get(there, []) + rows  # {"a.b": [...], "a": {"b": [...]}}
    return found


def _rows_of(held: Any) -> list[Any]:
    if isinstance(held, list):
        return held
    if not isinstance(held, dict):
        raise ValueError(f"it is a JSON {type(held).__name__}; expected a list of objects")
    values = list(held.values())
    if all(isinstance(value, dict) for value in values):
        keys = list(values[0]) if values else []
        is_numbered = bool(keys) and all(key.isdecimal() for key in keys)
        if not is_numbered or any(list(value) != keys for value in values):
            return values
        # As pandas writes a table: {"name": {"0": ..., "1": ...}, "dosage": {"0": ..., "1": ...}}
        return [{name: value[key] for name, value in held.items()} for key in keys]
    if not all(isinstance(value, list) for value in values):
        return [held]
    sizes = {name: len(cells) for name, cells in held.items()}
    short = min(sizes, key=lambda name: sizes[name])
    long = max(sizes, key=lambda name: sizes[name])
    if sizes[short] < sizes[long]:
        raise ValueError(
            f"its list {short!r} has {sizes[short]} values, and {long!r} has {sizes[long]}; expected "
            "columns of one length, or a list of objects"
        )
    return [dict(zip(held, cells, strict=True)) for cells in zip(*values, strict=True)]


def line_records(lines: Iterable[str]) -> Iterator[Record]:
    """Yield the objects of JSONL. A blank line is a row without values."""
    for number, line in enumerate(lines, start=1):
        try:
            yield as_record(number, _of_line(line)) if line.strip() else Record(number, {})
        except (ValueError, RecursionError) as error:
            yield Record(number, {}, f"not JSON ({error}): {line[:SHOWN]!r}")


def _of_line(line: str) -> Any:
    """Return the value of a line, which may begin a file put behind another, or end in a comma."""
    text = line.lstrip("\ufeff").rstrip().removesuffix(",")
    return json.loads(text, object_pairs_hook=Object)


def json_events(file: IO[str]) -> Iterator[tuple[str, str, Any]]:
    """Return ijson's events of a JSON text. Raises its errors, or ValueError: nested too deep."""
    pieces = ijson.from_iter(piece.encode() for piece in iter(partial(file.read, PIECE), ""))
    return ijson.parse(_shallow(ijson.basic_parse(pieces)))


def _shallow(events: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Bound the depth, because ijson's memory grows with its square, and make floats of decimals."""
    depth = 0
    for event, value in events:
        if event.startswith("start"):
            depth += 1
        elif event.startswith("end"):
            depth -= 1
        if depth > DEEPEST:
            raise ValueError(
                f"lists and objects are nested more than {DEEPEST} deep; expected a list of objects"
            )
        yield event, float(value) if isinstance(value, Decimal) else value
