"""A table of cells (CSV, Excel): finds its header below titles, notes and blank rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from data.json_rows import Rows
from data.records import Record
from sql_agent.intake.headers import is_known, with_unit

SEARCHED = 20  # first rows in which the header is searched
LINE = "-+|=:"  # what a program draws the line below a header with
UNNAMED = "column "  # begins the name of an unnamed column. Its number follows


class Part(NamedTuple):
    """One table of a source. `records()` starts anew each time. note: how it is read."""

    name: str
    columns: list[str]
    records: Rows
    header: int = 1  # number of the header row
    is_hidden: bool = False  # a sheet that a person does not see
    note: str = ""


SheetRows = Callable[[], Iterator[list[Any]]]  # the cells of each row


def below_headers(tables: Mapping[str, SheetRows], header_row: int | None = None) -> list[Part]:
    """Return the tables with a header row, given (counted from 1) or found. Raises ValueError."""
    parts = []
    for name, rows in tables.items():
        first = list(islice(rows(), header_row or SEARCHED))
        header = header_row or _header_of(first)
        if header > len(first) or is_blank(first[header - 1]):
            continue
        names = _completed(first[header - 1], first[: header - 1])
        told = _with_row_below(names, *first[header : header + 1])
        header += told != names
        columns = column_names(told)
        parts.append(Part(name, columns, partial(_records, rows, columns, header), header))
    if not parts:
        raise ValueError(f"it has no header row; expected column names in row {header_row or 1}")
    return parts


def _header_of(rows: list[list[Any]]) -> int:
    known = [sum(map(is_known, cells)) for cells in rows]
    if any(known):
        return known.index(max(known)) + 1
    filled = [sum(not is_blank([cell]) for cell in cells) for cells in rows]
    return next((at for at, count in enumerate(filled, 1) if 2 * count >= max(filled)), 1)


def _with_row_below(names: list[Any], lower: Sequence[Any] = ()) -> list[Any]:
    """Add a row that only divides the names, 安全性 into 不良反应 and 禁忌, or only holds their units."""
    pairs = list(zip(names, lower, strict=False))
    open_above = any(is_known(name) and is_blank([cell]) for name, cell in pairs)
    # A name that is merged over both rows stands in both
    new = [cell for name, cell in pairs if not is_blank([cell]) and cell != name]
    if open_above and new and all(map(is_known, new)):
        return _completed(list(lower), [names], every=True)
    told = list(names)
    are_units = all(with_unit(f"_({cell})", "1") != "1" for cell in new)
    if are_units and is_blank(lower[len(names) :]):
        for place, (name, cell) in enumerate(pairs):
            told[place] = f"{name or ''}({cell})" if cell in new else name
    return told


def _completed(header: list[Any], above: list[list[Any]], every: bool = False) -> list[Any]:
    """Fill blank header cells by known names above, or by every one."""
    names = list(header)
    for cells in reversed(above):
        for at, cell in enumerate(cells[: len(names)]):
            if is_blank([names[at]]) and (every or is_known(cell)) and cell not in names:
                names[at] = cell
    return names


def column_names(header: list[Any]) -> list[str]:
    """Return the columns' names, blank and repeated ones by their place. Raises ValueError."""
    names = ["" if cell is None else str(cell).strip().strip("\ufeff") for cell in header]
    counts = Counter(names)
    columns = []
    for place, name in enumerate(names, start=1):
        if counts[name] > 1 and is_known(name):
            raise ValueError(
                f"it has two columns named {name!r}, {place} and {names.index(name, place) + 1}; "
                "rename one, or give each table a sheet or file of its own"
            )
        numbered = f"{name} ({place})" if counts[name] > 1 else name
        columns.append(numbered if name else f"{UNNAMED}{place}")
    return columns


def _records(rows: SheetRows, columns: list[str], header: int) -> Iterator[Record]:
    named = [place for place, name in enumerate(columns, start=1) if not name.startswith(UNNAMED)]
    # Exports write a delimiter too many behind their header, or behind every row. Behind one row it
    # stands for a comma inside a cell
    least = max(named, default=0)
    filled = [cells for cells in islice(rows(), header, header + SEARCHED) if not is_blank(cells)]
    [(usual, _), *_] = Counter(map(len, filled)).most_common(1) or [(0, 0)]
    most = max(len(columns), usual)
    for number, cells in enumerate(rows(), start=1):
        if number <= header:
            continue
        if is_blank(cells):
            yield Record(number, {})
            continue
        problem = None
        if not least <= len(cells) <= most or not is_blank(cells[len(columns) :]):
            problem = f"{len(cells)} cells, the header has {len(columns)}"
        yield Record(number, dict(zip(columns, cells, strict=False)), problem)


def is_blank(cells: Sequence[Any]) -> bool:
    """Return whether cells hold nothing, or nothing but a drawn line."""
    texts = [cell for cell in cells if cell is not None]
    return all(isinstance(text, str) and not text.strip().strip(LINE) for text in texts)
