"""1,749 statements by people who had not read the guard, on every engine: the expressions of
corpus/statements.jsonl.

Whatever a statement is, the tool answers, shows nothing of the table it may not read, and leaves
the database alone. `refused` must be refused, `ok` must run and give what the engine itself gives;
`answer_or_error` are also harmless ones that the tool refuses, with what to write instead.
A commit draws some of them evenly (PER_COMMIT), the night plays all.
"""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.tools.sql import sites
from tests.tools.sql.draws import drawn
from tools.sql.query import Limits, QueryTool

pytestmark = pytest.mark.system

STATEMENTS = Path(__file__).parent / "corpus" / "statements.jsonl"
PER_COMMIT = {"sqlite": 70, "postgres": 75, "mysql": 10}
LIMITS = Limits(deadline=1.0)
COMPARED = {"legal", "wrong_answer"}  # kinds whose rows the engine is asked for as well

NEWER = "NULLS LAST"  # sqlglot writes for MariaDB what it cannot say itself


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("engine", PER_COMMIT)
def test_statements_of_strangers(engine, whole, request):
    site = request.getfixturevalue(f"{engine}_site")
    with sites.engine_at(site.url) as raw:
        with raw.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE secret (id integer, token varchar(100))")
            connection.exec_driver_sql(f"INSERT INTO secret VALUES (1, '{sites.SECRET}')")
        tool, state = QueryTool(site.url, limits=LIMITS, cache=False), site.state()
        cases = map(json.loads, STATEMENTS.read_text(encoding="utf-8").splitlines())
        cases = [case for case in cases if engine in case["engines"]]
        if not whole:
            cases = drawn(cases, PER_COMMIT[engine])
        try:
            problems = [problem for case in cases if (problem := _problem(case, tool, raw))]
            assert problems == []
            assert site.state() == state
        finally:
            with raw.begin() as connection:
                connection.exec_driver_sql("DROP TABLE secret")


def _problem(case, tool, raw):
    """What is wrong with the answer; None for nothing."""
    sql = eval(case["sql"])  # our own test data; some statements are too long to be written out
    result = tool.run(sql)
    if sites.SECRET in result.to_json():
        return f"a secret: {case['sql']}"
    if case["expect"] in ("ok", "refused") and result.ok != (case["expect"] == "ok"):
        return f"expected {case['expect']}: {case['sql']}: {result.error or result.rows}"
    compared = result.ok and case["kind"] in COMPARED and NEWER not in sql
    if compared and result.rows != _rows(raw, sql)[: len(result.rows)]:
        return f"another answer: {case['sql']}: {result.rows}"
    return None


def plain(cell):
    """A cell as the tool shows it."""
    return float(cell) if isinstance(cell, Decimal) else cell


def _rows(raw, sql):
    with raw.connect() as connection:
        options = connection.execution_options(no_parameters=True)
        found = options.exec_driver_sql(sql.strip().rstrip(";")).fetchmany(500)
    return [[*map(plain, row)] for row in found]
