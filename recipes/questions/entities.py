"""Read what questions can be asked about: the entities of both tables, and words that find rows.

Any database with the two tables will do. Names and searched columns are kept of every row, other
texts only of the entities that are asked about. A search word is kept if it finds 1 to LARGEST rows
that may all be asked about: the answer can then name them.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein
from sqlalchemy import make_url

from data.records import refusing
from recipes.fictional import FICTIONAL
from scoring.text import normalise
from sql_agent.gold.markup import plain
from sql_agent.intake.grid import Part
from sql_agent.intake.question_files import DataError
from sql_agent.intake.sources import database_parts
from sql_agent.tables import ASKABLE, NAME_COLUMN
from tools.sql.hints import slips

# Columns that are searched by a part of their text or by a whole value.
SEARCHED = {
    "drugs_info": ("med_name", "indication", "component", "company_name"),
    "disease": ("disease_name", "complication", "overview"),
}
LONGEST_NAME = 40
SHORTEST_KEYWORD = 3  # characters
# A name with one of these cannot be written unchanged into a LIKE pattern or, in MySQL, into a
# quoted text.
AWKWARD = frozenset("\\%_'\"\n\r\t")

LARGEST = 4  # names one answer can hold
LARGEST_COUNT = 20  # rows the tool shows, and the evidence of one count
BY_WORD = (("drugs_info", "indication"), ("drugs_info", "component"), ("disease", "complication"))
BY_VALUE = (("drugs_info", "company_name"),)
COUNTED_ONLY = {"complication"}  # questions ask only how many diseases are found
LONGEST = 12  # characters

# A clause ends at punctuation and at a quantity, but not at a number inside a word (2型糖尿病).
CLAUSE_END = re.compile(
    r"[\s\W_]+|[0-9]+(?:\.[0-9]+)?\s*(?:[毫微]?[克升]|万?单位|[a-zA-Z%‰]+|\D?(?![^\s\W_]))"
)
LEAD = re.compile(
    r"^(用于|适用于|治疗|预防|主治|可并发|并发|本品|主要成[分份]为?|每[片粒袋支]含?|含)+"
)
TAIL = re.compile(r"的(?:辅助|对症|联合)?(?:治疗|预防|用药)$")
JOINT = re.compile(r"伴|引起的?|所致的?|导致的?|以及|或|及|和|等")
MODIFIER = re.compile(r"^(轻度|中度|重度|急性|慢性|反复|轻中度|中重度|继发性|原发性)")


@dataclass(frozen=True)
class Entity:
    """One row of the database: its table, key, name and the texts that may be asked for.

    A field is "" if the cell is NULL. `cells` keeps the difference.
    """

    table: str
    row_id: int
    name: str
    fields: Mapping[str, str]
    cells: Mapping[str, str | None]


@dataclass
class Catalogue:
    """The content of the database, by table.

    filled: those of the columns with a value in some row. titles: the name of every row, by key.
    names: how many rows bear each name. askable: keys of all rows that may be asked about. texts:
    by table and column, the filled cells of SEARCHED columns, by key. entities: those asked about.
    """

    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    filled: dict[str, set[str]] = field(default_factory=dict)
    titles: dict[str, dict[int, str]] = field(default_factory=dict)
    names: dict[str, Counter[str]] = field(default_factory=dict)
    askable: dict[str, set[int]] = field(default_factory=dict)
    texts: dict[tuple[str, str], dict[int, str]] = field(default_factory=dict)
    entities: list[Entity] = field(default_factory=list)

    def find(self, table: str, column: str, keyword: str, limit: int) -> list[int]:
        """Return keys of up to `limit` + 1 rows whose cell holds the keyword, as LIKE finds it.

        [] if the column is missing, or the keyword is too short to distinguish rows.
        """
        if len(keyword) < SHORTEST_KEYWORD:
            return []
        found = re.compile(re.escape(keyword), re.IGNORECASE | re.ASCII).search
        cells = self.texts.get((table, column), {})
        return list(islice((key for key, text in cells.items() if found(text)), limit + 1))

    def is_unknown(self, name: str) -> bool:
        """Return whether no row has the name, one that contains it, or one spelt almost so."""
        if not is_plain(name) or any(self.find(*place, name, 0) for place in NAME_COLUMN.items()):
            return False
        limit = slips(name)
        return not any(
            process.extractOne(name, [*names], scorer=Levenshtein.distance, score_cutoff=limit)
            for names in self.names.values()
        )


def is_plain(name: str) -> bool:
    """Return whether a name or value can stand in a question, a quoted text and a LIKE pattern
    alike.
    """
    return (
        bool(name.strip())
        and name == name.strip()
        and len(name) <= LONGEST_NAME
        and not AWKWARD & set(name)
    )


def read_catalogue(url: str, limit: int, rng: random.Random) -> Catalogue:
    """Read the database. `limit` is the most entities of a table that are asked about.

    If it has invented entities (column `source`), only these are. Names borne by several rows are
    left out, because a question about one would have several answers. Raises DataError: it cannot
    be read, or lacks a table, the key `id` or a name column.
    """
    catalogue = Catalogue()
    with refusing("the URL of the database", DataError):
        place = make_url(url).render_as_string()
    with refusing(f"cannot read the database {place}", DataError):
        parts = {part.name: part for part in database_parts(url, views=True)}
        for table in NAME_COLUMN:
            if table not in parts:
                raise DataError(
                    f"the database has no table {table}; its tables: {', '.join(parts)}"
                )
            _read_table(parts[table], catalogue, limit, rng)
    return catalogue


def _read_table(part: Part, catalogue: Catalogue, limit: int, rng: random.Random) -> None:
    """Read a table twice: first what is kept of all rows, then the texts of those asked about."""
    table = part.name
    name_column = NAME_COLUMN[part.name]
    missing = {"id", name_column} - set(part.columns)
    if missing:
        raise DataError(
            f"table {table} has no column {', '.join(sorted(missing))}; see docs/your-data.md"
        )
    searched = [column for column in SEARCHED[table] if column in part.columns]
    rows = {}
    filled = catalogue.filled[table] = set()
    for record in part.records():
        row = record.values
        filled |= {column for column in part.columns if column not in filled and row.get(column)}
        if not isinstance(row["id"], int):
            kind = type(row["id"]).__name__
            raise DataError(
                f"table {table}, column id: {row['id']!r} is {kind}, expected whole numbers"
            )
        rows[row["id"]] = {column: row.get(column) for column in (*searched, "source")}
    titles = catalogue.titles[table] = {
        key: str(rows[key][name_column] or "") for key in sorted(rows)
    }
    # Ｃ片 is C片 to a reader and to some databases
    folded = Counter(map(normalise, titles.values()))
    shared = {title: folded[normalise(title)] for title in titles.values()}
    names = catalogue.names[table] = Counter(shared)
    catalogue.columns[table] = tuple(part.columns)
    for column in searched:
        catalogue.texts[table, column] = {
            key: str(rows[key][column]) for key in titles if rows[key][column]
        }
    askable = catalogue.askable[table] = {
        key for key in titles if rows[key]["source"] == FICTIONAL
    } or set(titles)
    single = [
        key
        for key, title in titles.items()
        if key in askable and names[title] == 1 and is_plain(title)
    ]
    drawn = set(rng.sample(single, limit) if len(single) > limit else single)
    chosen = (record.values for record in part.records() if record.values["id"] in drawn)
    entities = [_entity(part, row, titles) for row in chosen]
    catalogue.entities += sorted(entities, key=lambda entity: entity.row_id)


def _entity(part: Part, row: Mapping[str, Any], titles: Mapping[int, str]) -> Entity:
    cells = {column: row[column] for column in ASKABLE[part.name] if column in part.columns}
    texts = {column: None if cell is None else str(cell) for column, cell in cells.items()}
    filled = {column: text or "" for column, text in texts.items()}
    return Entity(part.name, row["id"], titles[row["id"]], filled, texts)


def left_out(catalogue: Catalogue) -> list[str]:
    """Return a line for each table with rows that no question is about because of their names."""
    lines = []
    for table, keys in catalogue.askable.items():
        titles = [catalogue.titles[table][key] for key in keys]
        shared = sum(catalogue.names[table][title] > 1 for title in titles)
        awkward = [title for title in titles if not is_plain(title)]
        if shared or awkward:
            lines.append(
                f"{shared:,} of {len(titles):,} rows of {table} bear the name of another row, and "
                f"{len(awkward):,} have a name over {LONGEST_NAME} characters or with a quotation "
                "mark, %, _ or \\: no question is about them"
            )
    return lines


def not_asked(catalogue: Catalogue) -> dict[str, list[str]]:
    found = {}
    for table, filled in catalogue.filled.items():
        asked = {"id", "source", NAME_COLUMN[table], *ASKABLE[table]}
        left = [name for name in catalogue.columns[table] if name in filled and name not in asked]
        if left:
            found[table] = left
    return found


@dataclass(frozen=True)
class SearchWord:
    """A text for which `column` is searched, or with `whole` compared, and the keys of the rows
    found.
    """

    table: str
    column: str
    text: str
    keys: tuple[int, ...]
    whole: bool = False


def parts_of(text: str) -> list[str]:
    """Return words of a field text that a person might search for, shorter ones first."""
    found: dict[str, None] = {}
    for clause in CLAUSE_END.split(text):
        fragment = TAIL.sub("", LEAD.sub("", clause))
        for part in (*JOINT.split(fragment), fragment):
            found.update(dict.fromkeys((MODIFIER.sub("", part), part)))
    return sorted((part for part in found if SHORTEST_KEYWORD <= len(part) <= LONGEST), key=len)


def search_words(catalogue: Catalogue, rng: random.Random) -> Iterator[SearchWord]:
    """Yield at most one word for each text of a searched column, in random order, no word twice."""
    for table, column in BY_WORD:
        keys = [entity.row_id for entity in catalogue.entities if entity.table == table]
        rng.shuffle(keys)
        texts = catalogue.texts.get((table, column), {})
        seen: set[str] = set()
        for key in keys:
            for part in parts_of(plain(texts.get(key, ""))):
                if part in seen:
                    break
                seen.add(part)
                if word := word_for(catalogue, table, column, part):
                    yield word
                    break


def word_for(catalogue: Catalogue, table: str, column: str, text: str) -> SearchWord | None:
    """Return the word with its rows, or None if it finds too many, or one that may not be asked
    about.
    """
    if not is_plain(text):
        return None
    largest = LARGEST_COUNT if column in COUNTED_ONLY else LARGEST
    keys = catalogue.find(table, column, text, largest)
    if not 1 <= len(keys) <= largest or not catalogue.askable[table].issuperset(keys):
        return None
    names = [catalogue.titles[table][key] for key in keys]
    if len({*map(normalise, names)}) < len(names) or not all(map(is_plain, names)):
        return None
    return SearchWord(table, column, text, tuple(keys))


def disease_words(catalogue: Catalogue) -> Iterator[SearchWord]:
    """Yield each disease asked about that 1 to LARGEST drugs name in their indication."""
    diseases = (entity.name for entity in catalogue.entities if entity.table == "disease")
    return filter(
        None, (word_for(catalogue, "drugs_info", "indication", name) for name in diseases)
    )


def filter_values(catalogue: Catalogue) -> Iterator[SearchWord]:
    """Yield each plain value that 1 to LARGEST_COUNT rows have, if all may be asked about."""
    for table, column in BY_VALUE:
        keys_of: dict[str, list[int]] = {}
        for key, value in catalogue.texts.get((table, column), {}).items():
            keys_of.setdefault(value, []).append(key)
        for value, keys in keys_of.items():
            if (
                is_plain(value)
                and len(keys) <= LARGEST_COUNT
                and catalogue.askable[table].issuperset(keys)
            ):
                yield SearchWord(table, column, value, tuple(keys), whole=True)


def names_of(word: SearchWord, catalogue: Catalogue) -> list[str]:
    return [catalogue.titles[word.table][key] for key in word.keys]


class Mentions:
    """Finds names of the database in a text, whether or not they were asked about."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_start: dict[str, dict[int, set[str]]] = {}
        for name in names:
            if len(name) > 1:
                self._by_start.setdefault(name[:2], {}).setdefault(len(name), set()).add(name)

    def find(self, text: str) -> list[str]:
        """Return every name of two characters or more in the text, in order, each once."""
        found: dict[str, None] = {}
        for at in range(len(text) - 1):
            for length, names in self._by_start.get(text[at : at + 2], {}).items():
                if text[at : at + length] in names:
                    found[text[at : at + length]] = None
        return list(found)
