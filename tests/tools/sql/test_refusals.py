"""What the guard alone says of a statement: the reason the model reads, or the text that is run in
its place.

Keeps of docs/safety.md, "Layers": each check of the guard, without the connection behind it,
which would hide that one is gone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from tools.sql.dialects import engine_dialect
from tools.sql.english import in_both
from tools.sql.guard import CACHED_BYTES, Refused, _check_words, check
from tools.sql.result import failure

TABLES = frozenset({"drugs_info", "disease"})
CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "corpus" / "guard.jsonl").read_text("utf-8").splitlines()
]
REFUSED = [case for case in CASES if "refused" in case]
WRITTEN = [case for case in CASES if "written" in case]
RUN_AS_IT_IS = [  # dialect, a text that would run, what it names itself, the function in it that nobody allowed
    ("sqlite", "SELECT abs(1) WHERE 1 IN (1)", "", None),
    ("sqlite", "SELECT EVIL (1)", "", "evil"),
    ("sqlite", 'SELECT "in"(1)', "", "in"),  # quoted, a plain word is a function's name
    ("sqlite", "WITH own(a) AS (SELECT 1) SELECT a FROM own", "Own", None),
    ("mariadb", 'SELECT "evil" (1)', "", None),  # a text to MariaDB, a name to others
    ("sqlite", 'SELECT "evil" (1)', "", "evil"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: ascii(case["sql"]))
def test_a_refusal_names_what_is_not_allowed_for_the_hint(case: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        check(case["sql"], case["dialect"], TABLES)
    assert [caught.value.kind, caught.value.name] == case["refused"]
    assert caught.value.name in str(caught.value).lower()


def test_each_refusal_can_be_said_in_english() -> None:
    written = (Path(__file__).parent / "corpus" / "attacks.txt").read_text(encoding="utf-8")
    attacks = [line.partition("] ")[2] for line in written.splitlines() if line[:1] == "["]
    said = set()
    for sql in [*(case["sql"] for case in REFUSED), *attacks, "SELECT [a] FROM disease", " "]:
        for dialect in ("sqlite", "postgres", "mariadb"):
            try:
                check(sql, dialect, TABLES)
            except Refused as refusal:
                said.add(str(failure(str(refusal)).error))
    assert len(said) > 100
    assert [message for message in said if in_both(message) == message] == []


@pytest.mark.parametrize(("dialect", "text", "own", "name"), RUN_AS_IT_IS)
def test_the_text_that_will_run_is_looked_at_once_more(
    dialect: str, text: str, own: str, name: str | None
) -> None:
    """Whatever sqlglot made of a statement on the way: a function that is not listed does not reach
    the database.
    """
    tokens = sqlglot.tokenize(text, read=engine_dialect(dialect))
    if name is None:
        _check_words(tokens, dialect, frozenset({own}))
    else:
        with pytest.raises(Refused, match=f"^不能使用函数 {name}。$"):
            _check_words(tokens, dialect, frozenset({own}))


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case["sql"])
def test_what_is_allowed_is_written_anew_and_its_names_are_known(case: dict[str, Any]) -> None:
    for padding in ("", " " * CACHED_BYTES):  # long statements are not kept, and checked alike
        found = check(case["sql"] + padding, case["dialect"], TABLES)
        assert found.sql == case["written"]
        assert (found.own_names, found.tables) == (set(case["own"]), set(case["tables"]))


def test_tables_of_a_schema_are_written_with_it() -> None:
    found = check("SELECT id FROM clinic.disease, drugs_info", "postgres", TABLES, "clinic")
    assert found.sql == 'SELECT id FROM "clinic".disease, "clinic".drugs_info'
    with pytest.raises(Refused, match=r"不能查询 public\.disease"):
        check("SELECT id FROM public.disease", "postgres", TABLES, "clinic")
