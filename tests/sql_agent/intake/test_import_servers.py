"""The import into real PostgreSQL and MariaDB servers."""

import pytest
from sqlalchemy import create_engine, inspect, text

from recipes.build_database import DEFAULT_PATH
from sql_agent.intake.import_database import main
from sql_agent.intake.target import REPLACE, Target, TargetError
from sql_agent.tables import TABLES
from tests.messages import missing
from tests.tools.sql.servers import fresh_database

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def url(request):
    return fresh_database(request.getfixturevalue(request.param), "imported")


def rows(address, table):
    engine = create_engine(address)
    with engine.connect() as connection:
        found = connection.execute(
            text(f"SELECT {', '.join(TABLES[table])} FROM {table} ORDER BY id")
        ).all()
    engine.dispose()
    return [tuple(row) for row in found]


def test_both_tables_arrive_with_comments_and_index_all_or_nothing(url, capsys):
    source = f"sqlite:///{DEFAULT_PATH}"
    arguments = [source, "--to", url]
    assert main(arguments) == 0
    for table in TABLES:
        assert rows(url, table) == rows(source, table)
    engine = create_engine(url)
    for table, columns in TABLES.items():
        found = {column["name"]: column["comment"] for column in inspect(engine).get_columns(table)}
        assert found == columns
        assert any(len(index["column_names"]) == 1 for index in inspect(engine).get_indexes(table))
    engine.dispose()
    assert main(arguments) == 2
    assert not missing(capsys.readouterr().err, "--replace", "--append")
    twice = [{"id": 5, "med_name": "甲片"}] * 2
    with pytest.raises(TargetError, match="nothing written"):
        Target(url, REPLACE).write({"drugs_info": twice})
    assert rows(url, "drugs_info") == rows(source, "drugs_info")
    assert main([*arguments, "--replace"]) == 0
    assert rows(url, "disease") == rows(source, "disease")
