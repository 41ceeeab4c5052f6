"""Reads the messages of a chat export one by one, never the whole file.

JSON and JSONL hold sessions or messages, tables (CSV, TSV, Excel, Parquet) a message a row.
`chat_export.toml` lists the names of columns and keys, English and Chinese.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.toml import table_beside
from data.json_rows import LINES
from data.records import SourceError
from sql_agent.intake.grid import Part
from sql_agent.intake.sources import WITH_HEADERS, open_parts

SEARCHED = 6  # first rows in which a header is searched, each time in a file opened anew
_TABLE = table_beside(__file__)
NAMES: dict[str, list[str]] = {field: text.split() for field, text in _TABLE["names"].items()}
USER_ROLES = frozenset(_TABLE["roles"]["user"].split())
OTHER_ROLES = frozenset(_TABLE["roles"]["other"].split())


@dataclass(frozen=True)
class Message:
    """One message, or a record that is none, with the `problem`."""

    where: str
    session: str = ""
    role: str = ""  # in lower case
    text: str = ""
    problem: str = ""


def read_messages(path: Path, encoding: str | None = None) -> Iterator[Message]:
    """Yield every message of the file in order. Raises SourceError: it cannot be read to its end."""
    kind = path.suffix.lower()
    parts = open_parts(str(path), encoding)
    if kind in WITH_HEADERS and not all(_has(part, "text") for part in parts):
        # A message such as 副作用 is the name of a column elsewhere, and was taken for one
        for row in range(1, SEARCHED + 1):
            with suppress(SourceError):
                found = open_parts(str(path), encoding, header_row=row)
                who = [part for part in found if _has(part, "role") or _has(part, "session")]
                if any(_has(part, "text") for part in (found if row == 1 else who)):
                    parts = found
                    break
    where = "line" if kind in LINES else "row"
    readable = [part for part in parts if _has(part, "text") or _has(part, "messages")]
    if not readable:
        seen = f"{path} has the columns {', '.join(parts[0].columns)}"
        raise SourceError(f"{seen}; expected one for the text, such as content or 内容")
    for part in parts:
        if part not in readable:
            yield Message(part.name, problem=f"no text; it has {', '.join(part.columns)}")
            continue
        for record in part.records():
            there = f"{where} {record.number}"
            if record.problem:
                yield Message(there, problem=record.problem)
            elif record.values:
                yield from _messages_of(record.values, there, str(record.number))


def _has(part: Part, field: str) -> bool:
    return any(_plain(column) in NAMES[field] for column in part.columns)


def _messages_of(record: dict[str, Any], where: str, number: str) -> Iterator[Message]:
    session = _scalar(_value(record, "session")) or _scalar(record.get("id")) or ""
    listed = _value(record, "messages", list)
    if listed is None:
        yield _message(record, session, where)
        return
    for place, message in enumerate(listed, start=1):
        yield _message(message, session or number, f"{where}, message {place}")


def _message(values: Any, session: str, where: str) -> Message:
    if not isinstance(values, dict):
        return Message(where, problem=f"{type(values).__name__}, expected an object")
    text = _text(_value(values, "text"))
    if text is None:
        has = ", ".join(map(str, list(values)[:8]))
        return Message(where, problem=f"no text; it has {has or 'nothing'}")
    role = (_scalar(_value(values, "role")) or "").strip().lower()
    return Message(where, session, role, text)


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
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # workbooks hold every number as a float
    return str(value)


def _text(value: Any) -> str | None:
    if not isinstance(value, list):
        return _scalar(value)
    texts = []
    for part in value:  # of OpenAI's form
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            texts.append(text)
    return "\n".join(texts)
