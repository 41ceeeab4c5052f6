"""The messages of a chat export, whatever its form: one after the other, never the whole file.

    for message in read_messages(Path("chats.json")):        # Message or Unreadable
        message.session, message.role, message.text, message.time

Understood: JSON (a list of sessions, `{"sessions": [...]}`, one session, a list of messages), JSONL
(a session or a message a line), CSV, TSV, Excel and Parquet (a message a row). Names of columns and
keys, English or Chinese, are in `chat_export.toml`. Text may be in any encoding that
`data/records.py` tells. Used by `utils/chat_session_filter.py`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from data.files import LINES, open_text
from data.json_rows import are_lines, json_events
from data.records import SourceError, detect_encoding, refusing
from sql_agent.intake.grid import Part
from sql_agent.intake.sources import WITH_HEADERS, open_parts

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NAMES: dict[str, list[str]] = {field: text.split() for field, text in _TABLE["names"].items()}
SESSION_LISTS: list[str] = _TABLE["session_lists"].split()
USER_ROLES, OTHER_ROLES = (frozenset(_TABLE["roles"][who].split()) for who in ("user", "other"))
# A number outside these years is not taken for a time
FIRST_YEAR = 1990
LAST_YEAR = 2100
DAY_FORMATS = (
    "%Y%m%d%H%M%S",
    "%Y年%m月%d日 %H:%M:%S",
    "%Y年%m月%d日 %H:%M",
    "%Y年%m月%d日",
    "%d/%m/%Y %H:%M",
)


@dataclass(frozen=True)
class Message:
    """One message. session: "" if the export names none. role: in lower case. time: ISO text, or
    None if unknown.
    """

    session: str
    role: str
    text: str
    time: str | None


@dataclass(frozen=True)
class Unreadable:
    """A record that is neither a message nor a session, and the reason."""

    where: str
    problem: str


def read_messages(path: Path, encoding: str | None = None) -> Iterator[Message | Unreadable]:
    """Yield every message of the file, in its order.

    Raises:
        SourceError: no such file, an unknown kind, or content that can not be read to its end.
    """
    lines = path.suffix.lower() in LINES or _are_lines(path, encoding)
    kind = "line" if lines else "row"
    if path.suffix.lower() == ".json" and not lines:
        records = _json_records(path, encoding)
    else:
        records = _table_records(path, encoding, lines)
    for number, record in records:
        yield from _messages_of(record, f"{kind} {number}", str(number))


def _are_lines(path: Path, encoding: str | None) -> bool:
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with (
        refusing(f"{path} can not be read as JSON"),
        open_text(path, encoding or detect_encoding(path)) as file,
    ):
        return are_lines(file)


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


def _json_records(path: Path, encoding: str | None) -> Iterator[tuple[int, Any]]:
    import ijson

    if not path.is_file():
        raise SourceError(
            f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; expected a chat export"
        )
    with refusing(f"{path} can not be read as JSON"):
        encoding = encoding or detect_encoding(path)
        with open_text(path, encoding) as file:
            prefix = _list_prefix(json_events(file), path)
            file.seek(0)
            yield from enumerate(ijson.items(json_events(file), prefix), start=1)


def _list_prefix(events: Iterator[tuple[str, str, Any]], path: Path) -> str:
    """Return where the records are: in the file's list, in a list of sessions, or the file is one
    session.
    """
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


def _messages_of(record: Any, where: str, number: str) -> Iterator[Message | Unreadable]:
    if not isinstance(record, dict):
        problem = (
            record if isinstance(record, str) else f"{type(record).__name__}, expected an object"
        )
        yield Unreadable(where, problem)
        return
    session = _scalar(_value(record, "session")) or _scalar(record.get("id")) or ""
    listed = _value(record, "messages", list)
    if listed is None:
        yield _message(record, session, where)
        return
    for place, message in enumerate(listed, start=1):
        there = f"{where}, message {place}"
        if isinstance(message, dict):
            yield _message(message, session or number, there, _value(record, "time"))
        else:
            yield Unreadable(there, f"{type(message).__name__}, expected an object")


def _message(
    values: dict[str, Any], session: str, where: str, time: Any = None
) -> Message | Unreadable:
    text = _text(_value(values, "text"))
    if text is None:
        return Unreadable(
            where, f"no text; it has {', '.join(map(str, list(values)[:8])) or 'nothing'}"
        )
    role = (_scalar(_value(values, "role")) or "").strip().lower()
    return Message(session, role, text, as_time(_value(values, "time") or time))


def _value(values: dict[str, Any], field: str, kind: type | None = None) -> Any:
    """Return the value under the first of the field's names that has one (of the kind)."""
    named = {_plain(str(key)): value for key, value in values.items()}
    found = (named.get(name) for name in NAMES[field])
    return next(
        (
            value
            for value in found
            if value is not None and (kind is None or isinstance(value, kind))
        ),
        None,
    )


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


def _scalar(value: Any) -> str | None:
    return (
        str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    )


def _text(value: Any) -> str | None:
    """Return a message's text; the parts of a list (OpenAI's form) are joined, without pictures and
    files.
    """
    if not isinstance(value, list):
        return _scalar(value)
    texts = [
        part if isinstance(part, str) else part.get("text")
        for part in value
        if isinstance(part, str | dict)
    ]
    return "\n".join(text for text in texts if isinstance(text, str))


def as_time(value: Any) -> str | None:
    """Return a time as ISO text: from ISO and Chinese forms, seconds or milliseconds since 1970;
    None for anything else.
    """
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    text = (_scalar(value) or "").strip()
    forms = (partial(datetime.strptime, text, form) for form in DAY_FORMATS)
    iso = (partial(datetime.fromisoformat, attempt) for attempt in (text.replace("/", "-"), text))
    for read in (partial(_since_1970, text), *iso, *forms):
        with suppress(ValueError, OverflowError, OSError):
            moment = read()
            if FIRST_YEAR <= moment.year <= LAST_YEAR:
                return moment.isoformat(sep=" ")
    return None


def _since_1970(text: str) -> datetime:
    number = float(text)
    return datetime.fromtimestamp(number / 1000 if number > 1e11 else number, UTC)
