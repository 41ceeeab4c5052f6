"""Rows of JSON texts: JSONL, or the objects of a list at any depth. One object is in memory.

for record in line_records(file): ...
for record in list_records("data.drugs.item", file): ...
for record in object_records(file): ...
"""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from itertools import starmap
from typing import IO, Any

import ijson

from data.records import PIECE, Record, as_record

LIST = "item"  # ijson's name for an element of a list
DEEPEST = 100  # levels of a JSON list
SHOWN = 60  # characters of a bad line in a message
LONGEST = 32 * 1024 * 1024  # characters of a bad file that are looked at


def are_lines(file: IO[str]) -> bool:
    """Return whether the first line is a JSON object that others follow. Reads that line."""
    first = next((line for line in file if line.strip()), "")
    second = next((line for line in file if line.strip()), "")
    try:
        return isinstance(_of_line(first), dict) and second.lstrip().startswith("{")
    except (ValueError, RecursionError):
        return False


def paths_of_lists(file: IO[str]) -> list[str]:
    """Return the ijson prefixes of all lists of objects that are not inside other lists."""
    places = dict.fromkeys(
        place
        for place, event, _ in json_events(file)
        if event == "start_map" and place.split(".").count(LIST) == 1 and place.endswith(LIST)
    )
    return list(places)


def list_records(place: str, file: IO[str]) -> Iterator[Record]:
    return starmap(as_record, enumerate(ijson.items(json_events(file), place), start=1))


def object_records(file: IO[str]) -> Iterator[Record]:
    """Yield the rows of a JSON text without a list of objects: the objects that an object holds, the
    places of its lists (a column each), or itself.

    Raises ValueError: its lists are not equally long.
    """
    whole: Any = next(ijson.items(json_events(file), ""), {})
    rows = whole
    if isinstance(whole, dict) and whole:
        values = list(whole.values())
        rows = [whole]
        if all(isinstance(value, dict) for value in values):
            rows = values
        elif all(isinstance(value, list) for value in values):
            rows = [dict(zip(whole, cells, strict=True)) for cells in zip(*values, strict=True)]
    return starmap(as_record, enumerate(rows, start=1))


def why_no_json(file: IO[str]) -> str:
    """Return what is wrong with a JSON text that could not be read, and where."""
    text = file.read(LONGEST)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return f"line {error.lineno} begins another JSON text; write one list of all"
        line = text.splitlines()[error.lineno - 1 :]
        return f"no JSON in line {error.lineno} ({error.msg}): {''.join(line[:1])[:SHOWN]!r}"
    except RecursionError:
        return "no JSON"
    return "NaN or Infinity, which JSON does not know; write null"


def json_events(file: IO[str]) -> Iterator[tuple[str, str, Any]]:
    """Return ijson's events of a JSON text. Raises its errors, or ValueError: nested too deep."""
    pieces = ijson.from_iter(piece.encode() for piece in iter(partial(file.read, PIECE), ""))
    return ijson.parse(_shallow(ijson.basic_parse(pieces)))


def _shallow(events: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Bound the depth, because ijson's memory grows with its square, and make floats of decimals."""
    depth = 0
    for event in events:
        if event[0].startswith("start"):
            depth += 1
        elif event[0].startswith("end"):
            depth -= 1
        if depth > DEEPEST:
            raise ValueError(
                f"lists and objects are nested more than {DEEPEST} deep; expected a list of objects"
            )
        is_decimal = isinstance(event[1], Decimal)
        yield (event[0], float(event[1])) if is_decimal else event


def _of_line(line: str | bytes) -> Any:
    """Return the value of a line, which may have the comma of a list behind it."""
    text = line if isinstance(line, str) else line.decode()
    return json.loads(text.rstrip().removesuffix(","))


def line_records(lines: Iterable[str | bytes]) -> Iterator[Record]:
    """Yield the objects of JSONL. Bytes are read as UTF-8. A blank line is a row without values."""
    for number, line in enumerate(lines, start=1):
        try:
            record = as_record(number, _of_line(line)) if line.strip() else Record(number, {})
        except (ValueError, RecursionError) as error:
            text = line if isinstance(line, str) else line.decode("utf-8", "replace")
            record = Record(number, {}, f"not JSON ({error}): {text[:SHOWN]!r}")
        yield record
