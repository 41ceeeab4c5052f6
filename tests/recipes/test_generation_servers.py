"""Questions from real PostgreSQL and MariaDB servers; skipped, saying so, where they are not
installed.
"""

from __future__ import annotations

import pytest

from recipes.build_database import DEFAULT_PATH
from recipes.build_dataset import make_dataset, request_for
from sql_agent.gold.checker import Checker
from sql_agent.intake.import_database import main as import_database
from tests.tools.sql.servers import fresh_database

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def url(request):
    target = fresh_database(request.getfixturevalue(request.param), "generated")
    assert import_database([f"sqlite:///{DEFAULT_PATH}", "--to", target]) == 0
    return target.replace("+psycopg", "")


def test_questions_are_confirmed_and_do_not_depend_on_the_engine(url):
    here = make_dataset(f"sqlite:///{DEFAULT_PATH}", request_for(200))
    there = make_dataset(url, request_for(200))
    rows = [row for part in there.splits.values() for row in part]
    assert [f for f in Checker(url).check(rows) if f.problems or f.unchecked] == []
    for split, rows in here.splits.items():
        assert [row["question"] for row in rows] == [row["question"] for row in there.splits[split]]
        assert [row["sql"] for row in rows] == [row["sql"] for row in there.splits[split]]
