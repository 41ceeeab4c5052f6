"""The import into real PostgreSQL and MariaDB servers."""

import pytest
from sqlalchemy import create_engine, inspect, text

from common.command import Failure
from recipes.build_database import DEFAULT_PATH
from sql_agent.gold.draft import fill_answers
from sql_agent.intake.import_database import main
from sql_agent.intake.question_files import COLUMNS
from sql_agent.intake.target import REPLACE, Target
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
    with pytest.raises(Failure, match="nothing written"):
        Target(url, REPLACE).write({"drugs_info": twice})
    assert rows(url, "drugs_info") == rows(source, "drugs_info")
    assert main([*arguments, "--replace"]) == 0
    assert rows(url, "disease") == rows(source, "disease")
    long = "药" * 6_000
    Target(url, REPLACE).write({"drugs_info": [{"id": 5, "med_name": "甲片", "storage": long}]})
    row = dict.fromkeys(COLUMNS, "") | {"sql": "SELECT storage FROM drugs_info"}
    fill_answers([row], url)
    assert long in row["answer"]


def test_a_table_of_postgres_without_a_key_and_with_odd_types_is_read(postgres, tmp_path):
    address = fresh_database(postgres, "odd_types")
    server = create_engine(address)
    with server.begin() as connection:
        columns = "med_name text, dosage text, med_barcode uuid, extra json, place point, page xml"
        connection.execute(text(f"CREATE TABLE drugs ({columns})"))
        values = "'甲药', '口服', '6f1a0c9e-0000-4000-8000-000000000001', '{}', '(1,2)', '<a/>'"
        connection.execute(text(f"INSERT INTO drugs VALUES ({values})"))
    server.dispose()
    target = f"sqlite:///{tmp_path / 'a.db'}"
    assert main([address, "--to", target]) == 0
    (found,) = rows(target, "drugs_info")
    assert {"甲药", "口服", "6f1a0c9e-0000-4000-8000-000000000001"} <= {*found}


def test_a_server_says_how_its_dates_and_numbers_are_written(postgres, mariadb, tmp_path):
    kinds = {
        postgres: [("date", "'infinity'", "infinity"), ("timestamp", "'2024-01-02'", "2024-01-02")],
        mariadb: [
            ("double", "0.123456789012", "0.123456789012"),
            ("int(5) zerofill", "12", "00012"),
            ("date", "'0000-00-00'", None),
            ("time", "'30:00:00'", "30:00:00"),
        ],
    }
    for number, (server, cells) in enumerate(kinds.items()):
        for place, (kind, value, expected) in enumerate(cells):
            address = fresh_database(server, f"written_{number}_{place}")
            engine = create_engine(address)
            with engine.begin() as connection:
                if number:
                    connection.execute(text("SET SESSION sql_mode = ''"))
                connection.execute(text(f"CREATE TABLE drugs (med_name text, created_at {kind})"))
                connection.execute(text(f"INSERT INTO drugs VALUES ('甲药', {value})"))
            engine.dispose()
            target = tmp_path / f"{number}_{place}.db"
            assert main([address, "--to", f"sqlite:///{target}"]) == 0
            (row,) = rows(f"sqlite:///{target}", "drugs_info")
            assert row[[*TABLES["drugs_info"]].index("created_at")] == expected


@pytest.mark.parametrize(
    ("engine", "named"), [("MyISAM", "ENGINE=InnoDB"), ("InnoDB", "nothing written")]
)
def test_mysql_writes_a_text_whole_or_keeps_the_old_rows(engine, named, mariadb, tmp_path, capsys):
    """Where the server is not strict, it would cut the text. MyISAM would keep a part of the rows."""
    address = fresh_database(mariadb, f"kept_by_{engine.lower()}")
    columns = ", ".join(f"{name} VARCHAR(40)" for name in TABLES["drugs_info"] if name != "id")
    server = create_engine(address)
    with server.begin() as connection:
        connection.execute(text(f"CREATE TABLE drugs_info (id INT, {columns}) ENGINE={engine}"))
        connection.execute(text("INSERT INTO drugs_info (id, med_name) VALUES (1, '旧药')"))
        mode = connection.scalar(text("SELECT @@GLOBAL.sql_mode"))
        connection.execute(text("SET GLOBAL sql_mode = ''"))
    source = tmp_path / "drugs.csv"
    source.write_text(f"药品名称,用法用量\n新药,{'很长' * 30}\n", encoding="utf-8")
    try:
        assert main([str(source), "--to", address, "--replace"]) in (1, 2)
    finally:
        with server.begin() as connection:
            connection.execute(text("SET GLOBAL sql_mode = :mode"), {"mode": mode})
            kept = connection.execute(text("SELECT id, med_name FROM drugs_info")).all()
        server.dispose()
    assert not missing(capsys.readouterr().err, named)
    assert [*map(tuple, kept)] == [(1, "旧药")]
