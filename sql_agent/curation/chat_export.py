"""Reads the messages of a chat export one by one, never the whole file.

    for message in read_messages(Path("chats.json")):        # Message or Unreadable
        message.session, message.role, message.text

JSON and JSONL hold sessions or messages, tables (CSV, TSV, Excel, Parquet) a message a row.
`chat_export.toml` lists the names of columns and keys, English and Chinese.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ijson

from data.files import LINES, open_text
from data.json_rows import are_lines, json_events
from data.records import SourceError, detect_encoding, refusing
from sql_agent.intake.cells import EXACT
from sql_agent.intake.grid import Part
from sql_agent.intake.sources import WITH_HEADERS, open_parts

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NAMES: dict[str, list[str]] = {field: text.split() for field, text in _TABLE["names"].items()}
SESSION_LISTS: list[str] = _TABLE["session_lists"].split()
USER_ROLES = frozenset(_TABLE["roles"]["user"].split())
OTHER_ROLES = frozenset(_TABLE["roles"]["other"].split())


@dataclass(frozen=True)
class Message:
    """One message. session: "" if the export names none. role: in lower case."""

    session: str
    role: str
    text: str


@dataclass(frozen=True)
class Unreadable:
    """A record that is neither a message nor a session, and the reason."""

    where: str
    problem: str


def read_messages(path: Path, encoding: str | None = None) -> Iterator[Message | Unreadable]:
    """Yield every message of the file in order.

    Raises SourceError: no such file, an unknown kind, or content that cannot be read to its end.
    """
    lines = path.suffix.lower() in LINES
    if path.suffix.lower() == ".json" and path.is_file():
        with refusing(f"{path} cannot be read as JSON"):
            encoding = encoding or detect_encoding(path)
            with open_text(path, encoding) as file:
                lines = are_lines(file)
            if not lines:
                yield from _json_messages(path, encoding)
                return
    kind = "line" if lines else "row"
    for number, record in _table_records(path, encoding, lines):
        yield from _messages_of(record, f"{kind} {number}", str(number))


def _json_messages(path: Path, encoding: str) -> Iterator[Message | Unreadable]:
    with open_text(path, encoding) as file:
        prefix = _list_prefix(json_events(file), path)
        file.seek(0)
        for number, record in enumerate(ijson.items(json_events(file), prefix), start=1):
            yield from _messages_of(record, f"row {number}", str(number))


def _list_prefix(events: Iterator[tuple[str, str, Any]], path: Path) -> str:
    """Return ijson's prefix of the records: the list's, or "" for a file that is one session."""
    seen = []
    for place, event, value in events:
        if place == "" and event == "start_array":
            return "item"
        if event == "start_array" and "." not in place:
            if place in SESSION_LISTS:
                return f"{place}.item"
            if _plain(place) in NAMES["messages"]:
                return ""
        if place == "" and event == "map_key":
            seen.append(value)
    wanted = f"a list of sessions, or an object with one of {', '.join(SESSION_LISTS)}"
    raise SourceError(
        f"{path} is an object with {', '.join(seen[:8]) or 'no keys'}; expected {wanted}"
    )


def _table_records(path: Path, encoding: str | None, lines: bool) -> Iterator[tuple[int, Any]]:
    parts = open_parts(str(path), encoding)
    if path.suffix.lower() in WITH_HEADERS and not all(map(_has_text, parts)):
        # A message such as 副作用 is the name of a column elsewhere, and was taken for one
        parts = open_parts(str(path), encoding, header_row=1)
    for part in parts:
        if not lines and not _has_text(part):
            seen = f"{path} has the columns {', '.join(part.columns)}"
            raise SourceError(f"{seen}; expected one for the text, such as content or 内容")
        for record in part.records():
            if record.problem:
                yield record.number, record.problem
            elif record.values:
                yield record.number, record.values


def _has_text(part: Part) -> bool:
    return any(_plain(column) in NAMES["text"] for column in part.columns)


def _messages_of(record: Any, where: str, number: str) -> Iterator[Message | Unreadable]:
    if not isinstance(record, dict):
        seen = record if isinstance(record, str) else type(record).__name__
        yield Unreadable(where, f"{seen}, expected an object")
        return
    session = _scalar(_value(record, "session")) or _scalar(record.get("id")) or ""
    listed = _value(record, "messages", list)
    if listed is None:
        yield _message(record, session, where)
        return
    for place, message in enumerate(listed, start=1):
        there = f"{where}, message {place}"
        if isinstance(message, dict):
            yield _message(message, session or number, there)
        else:
            yield Unreadable(there, f"{type(message).__name__}, expected an object")


def _message(values: dict[str, Any], session: str, where: str) -> Message | Unreadable:
    text = _text(_value(values, "text"))
    if text is None:
        has = ", ".join(map(str, list(values)[:8]))
        return Unreadable(where, f"no text; it has {has or 'nothing'}")
    role = (_scalar(_value(values, "role")) or "").strip().lower()
    return Message(session, role, text)


def _value(values: dict[str, Any], field: str, kind: type = object) -> Any:
    named = {_plain(str(key)): value for key, value in values.items()}
    for name in NAMES[field]:
        value = named.get(name)
        if value is not None and isinstance(value, kind):
            return value
    return None


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


def _scalar(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        value = int(value)  # workbooks hold every number as a float
    return str(value)


def _text(value: Any) -> str | None:
    """Return a message's text. Of a list of parts (OpenAI's form) only the texts are joined."""
    if not isinstance(value, list):
        return _scalar(value)
    texts = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            texts.append(text)
    return "\n".join(texts)
