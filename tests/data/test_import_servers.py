"""The import into real PostgreSQL and MariaDB servers; skipped, saying so, where they are not installed."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, inspect, text

from data.build_database import DEFAULT_PATH
from data.database.schema import TABLES
from data.import_database import main
from data.intake.staging import StagedRow
from data.intake.target import REPLACE, Target, TargetError
from tests.tools.sql.servers import mariadb_server, postgres_server


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def url(request):
    start = postgres_server if request.param == "postgresql" else mariadb_server
    with start() as (address, _):
        yield address.replace("postgresql://", "postgresql+psycopg://")


def rows(address, table):
    engine = create_engine(address)
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT {', '.join(TABLES[table])} FROM {table} ORDER BY id")).all()
    engine.dispose()
    return [tuple(row) for row in found]


def test_both_tables_arrive_with_comments_and_index_all_or_nothing(url, tmp_path, capsys):
    source = f"sqlite:///{DEFAULT_PATH}"
    arguments = [source, "--to", url, "--work", str(tmp_path)]
    assert main(arguments) == 0
    for table in TABLES:
        assert rows(url, table) == rows(source, table)
    engine = create_engine(url)
    for table, columns in TABLES.items():
        found = {column["name"]: column["comment"] for column in inspect(engine).get_columns(table)}
        assert found == columns
        assert any(len(index["column_names"]) == 1 for index in inspect(engine).get_indexes(table))
    engine.dispose()
    assert main(arguments) == 1
    assert "--replace or --append" in capsys.readouterr().err
    twice = [StagedRow(number, 5, {"med_name": "甲片"}) for number in (1, 2)]
    with pytest.raises(TargetError, match="nothing written"):
        Target(url, REPLACE).write({"drugs_info": twice}, "x")
    assert rows(url, "drugs_info") == rows(source, "drugs_info")
    assert main([*arguments, "--replace"]) == 0
    assert rows(url, "disease") == rows(source, "disease")
    assert list(tmp_path.iterdir()) == []


def test_another_server_as_the_source(url, tmp_path):
    assert main([f"sqlite:///{DEFAULT_PATH}", "--to", url, "--work", str(tmp_path), "--replace"]) == 0
    back = f"sqlite:///{tmp_path / 'back.db'}"
    assert main([url, "--to", back]) == 0
    for table in TABLES:
        assert rows(back, table) == rows(url, table)
