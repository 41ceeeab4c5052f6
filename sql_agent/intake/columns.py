"""Maps foreign columns to ours, by a mapping file, else by name."""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import TypeAdapter, ValidationError
from rapidfuzz import fuzz, process

from common.language import said
from data.records import SourceError
from sql_agent.intake.cells import readable
from sql_agent.intake.grid import UNNAMED, Part
from sql_agent.intake.headers import CELLS, EXACT, LONGEST, claims, is_known, is_word, normalise
from sql_agent.tables import NAME_COLUMN, TABLE_WORDS, TABLES

Given = Mapping[str, str | None]  # a mapping file: source column, our column
Cells = Mapping[str, list[str]]  # the filled cells of each source column in the first rows
SAMPLED = 200  # rows that are looked at
LISTED = 40  # names in a message


class Planned(NamedTuple):
    """A part of a source, and where it goes."""

    part: Part
    table: str
    mapping: dict[str, str]
    unused: list[str]  # columns that nobody decided about
    is_counted: bool = False  # its ids are running numbers (序号), which may begin anew

    @property
    def named(self) -> str:
        """The foreign column of the names."""
        name = NAME_COLUMN[self.table]
        return next(source for source, column in self.mapping.items() if column == name)

    def report(self) -> str:
        """Return lines that say where the header is and what becomes of each column."""
        lines = []
        if self.part.header > 1:
            lines.append(said("  the column names are in row {row}", row=self.part.header))
        used = [f"{' '.join(source.split())} -> {ours}" for source, ours in self.mapping.items()]
        lines.append(said("  columns: {columns}", columns=", ".join(used)))
        ignored = [column for column in self.part.columns if column not in self.mapping]
        if ignored:
            lines.append(said("  not used: {columns}", columns=listed(ignored)))
        if self.unused:
            lines.append(said("  to decide about them, lines for the file of --mapping:"))
            lines += [mapping_line(source, None) for source in self.unused[:LISTED]]
        return "\n".join(lines)


def plan_parts(parts: list[Part], given: Given) -> tuple[list[Planned], list[str]]:
    """Return which parts are imported where, and the names of the others. Raises SourceError."""
    _check_given(given, list(chain(*(part.columns for part in parts))))
    planned = []
    skipped = []
    for part in parts:
        own = {source: column for source, column in given.items() if source in part.columns}
        target = guess_table(part.columns, part.name, own)
        if target is None:
            skipped.append(part)
            continue
        cells = sample(part)
        mapping = map_columns(part.columns, target, own, cells)
        decided = {*mapping, *own}
        unused = []
        for source in part.columns:
            if source not in decided and (cells[source] or not source.startswith(UNNAMED)):
                unused.append(source)
        key = next((source for source, column in mapping.items() if column == "id"), "")
        is_counted = bool(key) and claims(key, target).get("id", EXACT) < EXACT
        item = Planned(part, target, mapping, unused, is_counted)
        _refuse_names_as_rows(item, cells[item.named])
        if item.named not in own:
            _refuse_rows_in_cells(item, cells[item.named])
        planned.append(item)
    if not planned:
        seen = "; ".join(f"{part.name}: {listed(part.columns)}" for part in skipped)
        raise SourceError(
            f"which table is it? No column is the name of a drug or a disease: {seen}. If these are "
            "names of columns, name that of the name with --mapping FILE, a file with a line such as "
            f"{mapping_line('NAME', 'med_name')} or {mapping_line('NAME', 'disease_name')}; if they are a row, "
            "put a line of names above it; if they are one name, tell the delimiter by a first line "
            "such as sep=;"
        )
    return planned, [part.name for part in skipped]


def _check_given(given: Given, there: list[str]) -> None:
    ours = list(chain(*TABLES.values()))
    for source, column in given.items():
        if source not in there:
            raise SourceError(
                f"the mapping names the column {source!r}; the source has: {listed(there)}"
            )
        if column and column not in ours:
            likest, _, _ = process.extractOne(column, ours, scorer=fuzz.ratio)
            raise SourceError(
                f"the mapping names {column!r} for {source!r}, which is a column of neither table; "
                f"the nearest is {likest}, and null leaves {source!r} out"
            )


def guess_table(columns: Iterable[str], name: str = "", given: Given | None = None) -> str | None:
    """Return our table that foreign columns describe, else ours of the same name, else None.

    Columns decide if one of them is the entity's name and no other table fits as well. `given`
    decides for the columns it names.
    """
    given = given or {}
    wanted = {column for column in given.values() if column}
    tables = [table for table in TABLES if wanted <= TABLES[table].keys()]
    if wanted and len(tables) == 1:
        return tables[0]
    found = {table: dict.fromkeys(wanted, EXACT) for table in tables}
    for source in columns:
        ranks = {table: claims(source, table) for table in tables if source not in given}
        surest = max(chain(*(claimed.values() for claimed in ranks.values())), default=0)
        for table, claimed in ranks.items():
            for column, rank in claimed.items():
                # 疾病名称 is less surely the name of a drug
                if column != NAME_COLUMN[table] or rank == surest:
                    found[table].setdefault(column, rank)
    fits = {}
    for table, claimed in found.items():
        if NAME_COLUMN[table] in claimed:
            fits[table] = sum(claimed.values())
    best = [table for table, fit in fits.items() if fit == max(fits.values())]
    if len(best) == 1:
        return best[0]
    for table in tables:
        if normalise(name) in map(normalise, TABLE_WORDS[table]):
            return table
    return None


def sample(part: Part) -> dict[str, list[str]]:
    """Return the filled cells of each column in the first rows, as texts without a unit."""
    cells: dict[str, list[str]] = {column: [] for column in part.columns}
    for record in islice(part.records(), SAMPLED):
        for column, value in record.values.items():
            if text := readable(value):
                cells[column].append(text)
    return cells


def _refuse_names_as_rows(item: Planned, cells: list[str]) -> None:
    """Refuse a table that lies on its side, and the text of a leaflet (适应症：头痛)."""
    is_name, share = (is_known, 3) if len(item.part.columns) == 1 else (is_word, 2)
    names = [cell for cell in cells if is_name(cell) and cell != item.named]
    if len(names) > 1 and share * len(names) > len(cells):
        raise SourceError(
            f"{item.part.name}: below {item.named!r} stand the names of columns "
            f"({listed(names)}); turn the table, so that each row is a drug or a disease"
        )


def _refuse_rows_in_cells(item: Planned, cells: list[str]) -> None:
    """Refuse whole rows in one column, divided by a sign that was not taken for a delimiter."""
    others = [name for name in item.part.columns if not name.startswith(UNNAMED)]
    pieces = re.split(r"(\W+)", item.named)
    names, signs = pieces[::2], set(pieces[1::2])
    if len(others) > 1 or len(signs) != 1 or not all(map(is_known, names)):
        return
    sign = signs.pop().strip()
    if sign and cells and all(cell.count(sign) == len(names) - 1 for cell in cells):
        raise SourceError(
            f"{item.part.name}: the column {item.named!r} holds whole rows, divided by {sign!r}; "
            f"divide it into columns, or in text put a line such as sep={sign} above the names and "
            "remove quotation marks around rows"
        )


def listed(names: list[str]) -> str:
    """Return names in a line of bounded length."""
    shown = [" ".join(name.split())[:LONGEST] for name in names[:LISTED]]
    more = f", ... and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(shown) + more


def map_columns(
    columns: list[str], table: str, given: Given, cells: Cells | None = None
) -> dict[str, str]:
    """Return the foreign columns that are used, each with the column of `table` it fills.

    `given` decides first (None: leave out). Columns given for the same one are joined. The others
    go by name, the surest first, if their cells do not contradict. Raises SourceError: two columns
    fill the same one, or none is the name.
    """
    found = []
    for source in columns:
        if source not in given:
            for column, rank in claims(source, table).items():
                if cells is None or _may_be(column, rank, cells[source]):
                    found.append((rank, source, column))
    found.sort(key=lambda claim: -claim[0])
    chosen = {source: column for source, column in given.items() if column}
    filled = {column: (0, source) for source, column in chosen.items()}
    for rank, source, column in found:
        if source in chosen:
            continue
        earlier, first = filled.setdefault(column, (rank, source))
        if first == source:
            chosen[source] = column
        elif earlier == rank:
            is_name = column == NAME_COLUMN[table]
            second = mapping_line(source, None if is_name else column)
            raise SourceError(
                f"columns {first!r} and {source!r} both fill {column}; choose with --mapping FILE, a "
                f"file with the lines {mapping_line(first, column)} and {second} (two lines for one "
                "column join their texts, null leaves one out)"
            )
    name = NAME_COLUMN[table]
    if name not in chosen.values():
        raise SourceError(
            f"no column for {name} of {table} among: {listed(columns)}; name it with --mapping "
            f"FILE, a file with a line such as {mapping_line('NAME', name)}"
        )
    return {source: chosen[source] for source in columns if source in chosen}


def _may_be(column: str, rank: int, cells: list[str]) -> bool:
    if column not in CELLS or (rank >= EXACT and column != "id"):
        return True
    fitting = sum(bool(CELLS[column].fullmatch(cell)) for cell in cells)
    if rank >= EXACT:
        return fitting > 0 or not cells  # an id of letters is not ours
    return 2 * fitting >= len(cells)


def mapping_line(source: str, column: str | None) -> str:
    """Return a line of a mapping file, in JSON's quotation marks, which YAML shares."""
    return f"{json.dumps(source, ensure_ascii=False)}: {column or 'null'}"


def read_mapping(path: Path) -> dict[str, str | None]:
    """Return a JSON or YAML file of `source column: our column` (null: leave out)."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(text)
        return TypeAdapter(dict[str, str | None]).validate_python(content)
    except ValidationError:
        raise SourceError(
            f"{path}: expected lines of `source column: our column`, all text"
        ) from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise SourceError(
            f"cannot read the mapping {path}: {' '.join(str(error).split())}"
        ) from None
