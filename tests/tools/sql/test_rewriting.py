"""What sqlglot would mend or rewrite: the engine's own refusals, and the engine's own values."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy.exc import DBAPIError

from tests.messages import missing
from tests.tools.sql import sites
from tools.sql.database import Access, GuardFault, StatementError, open_database
from tools.sql.query import UNSUPPORTED, QueryTool

SITES = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.system),
    pytest.param("mysql", marks=pytest.mark.system),
]
# sqlglot reads these, and writes something that runs
MENDED_BY_SQLGLOT = {
    "all": [
        "SELECT id FROM disease HAVING id > 1 WHERE id = 1",
        "SELECT id FROM disease ORDER BY id WHERE id = 1",
        "SELECT id FROM disease LIMIT 1 ORDER BY id",
        "SELECT id FROM (SELECT id FROM disease GROUP BY id WHERE id = 1) AS s",
        "SELECT id, cause, FROM disease",
        "SELECT id FROM disease WHERE id IN (1, 2,)",
        "SELECT id FROM disease GROUP BY id, ORDER BY id",
        "SELECT id FROM disease ORDER BY id,",
        "SELECT id FROM disease ORDER BY id ASC DESC",
        "SELECT id AS FROM disease",
        "SELECT len(cause) FROM disease",
        "WITH c AS (SELECT 1 AS n), SELECT n FROM c",
    ],
    "sqlite": [
        "SELECT id FROM disease WHERE id <=> 1",
        "SELECT 7 DIV 2",
        "SELECT if(id > 3, 1, 2), id FROM disease OFFSET 1",
        "SELECT char_length(cause) FROM disease",
        "SELECT id FROM disease ORDER BY id OFFSET 1 ROWS",
        "SELECT id FROM disease WHERE cause ILIKE 'a%'",
        "SELECT concat_ws('-', id) x, id FROM disease FETCH FIRST 1 ROWS ONLY",
        """SELECT json_extract('{"a": 7}', 'a')""",
        """SELECT '{"a": 7}' -> ''""",
        "SELECT\u3000id FROM disease",
    ],
    "postgres": [
        "SELECT ifnull(id, 0) FROM disease",
        "SELECT id FROM disease WHERE id <=> 1",
        "SELECT group_concat(cause) FROM disease",
        "SELECT id FROM disease WHERE id == 1",
        "SELECT id FROM disease LIMIT 1, 2",
        "SELECT 'a' 'b'",
        "SELECT interval '1 day hence'",
    ],
    "mysql": [
        "SELECT id FROM disease ORDER BY id NULLS LAST",
        "SELECT id::char FROM disease",
        "SELECT strpos(cause, 'a') FROM disease",
        "SELECT id FROM disease WHERE cause ILIKE 'a%'",
        "SELECT id FROM disease WHERE id == 1",
        "SELECT count (*) FROM disease",
    ],
}
LEGAL = {
    "all": ["SELECT log10(100), sqrt(4), power(2, 3), mod(7, 3), ceil(1.2), floor(1.8)"],
    "sqlite": [
        "SELECT mod(7.5, 2), 7.5 % 2, log(2, 8), log2(8), pow(2, 3), pi(), trunc(1.5)",
        "SELECT json_array_length('[1, 2]'), json_type('[1]'), json_valid('x')",
        "WITH c(n) AS (SELECT 1) SELECT n FROM c",
        """SELECT '{"a": 7, "b c": [1, 2]}' -> '$', '{"a": 7}' ->> 'a'""",
        """SELECT json_extract('{"a": 7, "b c": [1, 2]}', '$."b c"[#-1]', '$.a')""",
    ],
    "postgres": [
        "SELECT current_time IS NULL, now() AT TIME ZONE 'Asia/Shanghai' IS NULL",
        "SELECT id FROM disease WHERE id = ANY ('{1,2}'::int[]) ORDER BY id",
        "SELECT cause SIMILAR TO 'a%', (ARRAY[1, 2, 3])[2:3]::text FROM disease WHERE id = 1",
        "SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', date '2024-03-01')",
        "SELECT grouping(id), corr(id, id) FROM disease WHERE id < 3 GROUP BY ROLLUP (id)",
        """SELECT '{"$.a": 7, "a": 8}'::json ->> '$.a', '{"a": 8}'::jsonb -> '' IS NULL""",
        "SELECT interval '1 day ago' + '1 day' = '0', interval '.5 hours' = '30 min', 40000::int8",
        "SELECT interval '2' day = interval '48 hours', interval '1 year 2 months' > '1 year'",
        """SELECT '{"a": {"b": 7}}'::jsonb #>> '{a,b}', '{"a": 7}'::jsonb @> '{"a": 7}'""",
        "SELECT 1 <> ALL (ARRAY[2, 3]), ROW(1, 2) = (1, 2), 'a '::bpchar = 'a', ARRAY[1] && ARRAY[1]",
        "SELECT date_part('month', date '2024-05-06') / 2",
    ],
    "mysql": [
        "SELECT id FROM disease WHERE id < 3 UNION SELECT id FROM drugs_info WHERE id < 4 ORDER BY id DESC",
        "SELECT id, id FROM disease WHERE id < 3 UNION SELECT 5, 6 ORDER BY 1 DESC",
        "SELECT median(id) OVER () FROM disease WHERE id < 3",
        "SELECT log(1), log2(8), stddev_samp(id), json_length('[1, 2]') FROM disease WHERE id < 3",
        """SELECT json_extract('{"a": [1, 2]}', 'a'), json_extract('{"a": [1, 2]}', '$.a[*]')""",
        """SELECT json_extract('{"x": {"y": 7}}', '$**.y'), json_extract('{"a": 7}', '$.*')""",
        "SELECT x'41' = 'A', X'4142' = 'AB'",
    ],
}


@pytest.mark.parametrize("engine", SITES)
def test_what_the_engine_refuses_is_refused(engine: str, request: pytest.FixtureRequest) -> None:
    site = request.getfixturevalue(f"{engine}_site")
    tool = QueryTool(site.url, cache=False)
    with sites.engine_at(site.url) as raw:
        for sql in MENDED_BY_SQLGLOT["all"] + MENDED_BY_SQLGLOT[engine]:
            with raw.connect() as connection, pytest.raises(DBAPIError):
                connection.exec_driver_sql(sql, execution_options={"no_parameters": True}).all()
            assert tool.run(sql).error, sql


@pytest.mark.parametrize("engine", SITES)
def test_what_the_engine_runs_gives_its_own_rows(
    engine: str, request: pytest.FixtureRequest
) -> None:
    site = request.getfixturevalue(f"{engine}_site")
    tool = QueryTool(site.url, cache=False)
    with sites.engine_at(site.url) as raw:
        for sql in LEGAL["all"] + LEGAL[engine]:
            with raw.connect() as connection:
                options = {"no_parameters": True}
                found = connection.exec_driver_sql(sql, execution_options=options).all()
            rows = [
                [float(cell) if isinstance(cell, Decimal) else cell for cell in row]
                for row in found
            ]
            assert tool.run(sql).rows == rows, sql


@pytest.mark.parametrize("engine", SITES)
def test_what_the_guard_alone_made_unreadable_is_not_called_wrong(
    engine: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    site = request.getfixturevalue(f"{engine}_site")
    database = open_database(site.url)
    read_by_engine = Access(frozenset(), written="SELECT 1")
    unreadable = "SELECT INTERVAL '1' DAY" if engine == "mysql" else "SELECT 1 WHERE WHERE"
    with pytest.raises(GuardFault):
        database.read(unreadable, read_by_engine, 1.0, 1)
    with pytest.raises(StatementError) as raised:
        database.read(unreadable, Access(frozenset()), 1.0, 1)
    assert not isinstance(raised.value, GuardFault)
    if engine == "postgres":
        answer = QueryTool(site.url).answer(database, "SELECT FROM disease")
        assert answer.result.error == UNSUPPORTED
        assert not missing(caplog.text, "SELECT FROM disease")
