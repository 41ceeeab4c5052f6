"""The database and question files: reproducible, disjoint, confirmed by the database, the committed ones current."""

from __future__ import annotations

import json
import sqlite3

import pytest

from data import build_database, build_dataset, fictional
from data.check import FILES, check_rows
from data.check import main as check_main
from data.load import load_rows
from data.schema import ASKABLE, FICTIONAL, NAME_COLUMN, TABLES, TEXTBOOK
from data.templates import LABELS, QUESTIONS

URL = f"sqlite:///{build_database.DEFAULT_PATH}"
LONGEST_FIELD = 24


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "medical.db"
    assert build_database.main(["--output", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def committed():
    return {path.stem: load_rows(path) for path in FILES}


def dump(path):
    with sqlite3.connect(path) as connection:
        return list(connection.iterdump())


def test_same_seed_gives_the_same_database(database, tmp_path):
    again = tmp_path / "again.db"
    assert build_database.main(["--output", str(again)]) == 0
    assert again.read_bytes() == database.read_bytes()
    assert fictional.invent_all(1) != fictional.invent_all(2)


def test_committed_database_is_what_the_script_builds(database):
    assert dump(build_database.DEFAULT_PATH) == dump(database)


def test_tables_have_the_columns_of_the_schema(database):
    with sqlite3.connect(database) as connection:
        for table, columns in TABLES.items():
            found = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            assert found == [*columns]


def test_invented_names_are_unique_and_no_name_contains_another():
    tables = {table: list(rows) for table, rows in fictional.fictional_rows(fictional.SEED, 400, 260).items()}
    names = [row[NAME_COLUMN[table]] for table, rows in tables.items() for row in rows]
    assert len(names) == 660
    assert not [(name, other) for name in names for other in names if name != other and name in other]


def test_every_cell_is_filled_and_askable_texts_are_short_and_unique():
    for table, rows in fictional.invent_all().items():
        assert all(cell for row in rows for cell in row.values())
        for column in ASKABLE[table]:
            texts = [row[column] for row in rows]
            assert max(map(len, texts)) <= LONGEST_FIELD
            assert len(set(texts)) == len(texts)


def test_an_exhausted_vocabulary_is_an_error_not_a_loop(monkeypatch):
    monkeypatch.setattr(fictional.words, "MEAL_TIMES", ("饭后服用",))
    monkeypatch.setattr(fictional, "MAX_TRIES", 50)
    with pytest.raises(RuntimeError, match="add words"):
        fictional.invent_all(drugs=2000, diseases=1)


def test_more_invented_rows_move_none_of_the_first():
    first = fictional.invent_all()
    more = {table: list(rows) for table, rows in fictional.fictional_rows(fictional.SEED, 2000, 500).items()}
    for table, count in (("drugs_info", 2000), ("disease", 500)):
        assert more[table][: len(first[table])] == first[table]
        assert [row["id"] for row in more[table]] == list(range(1, count + 1))
        assert len({row[NAME_COLUMN[table]] for row in more[table]}) == count
        assert {row["source"] for row in more[table]} == {FICTIONAL}


def test_a_database_of_another_size_is_as_reproducible(tmp_path):
    arguments = ["--fictional-drugs", "700", "--fictional-diseases", "0", "--seed", "5"]
    for name in ("one.db", "two.db"):
        assert build_database.main(["--output", str(tmp_path / name), *arguments]) == 0
    assert (tmp_path / "one.db").read_bytes() == (tmp_path / "two.db").read_bytes()
    with sqlite3.connect(tmp_path / "one.db") as connection:
        found = connection.execute("SELECT source, count(*) FROM drugs_info GROUP BY source").fetchall()
        assert found == [(FICTIONAL, 700), (TEXTBOOK, 82)]
        found = connection.execute("SELECT DISTINCT source FROM disease").fetchall()
        assert found == [(TEXTBOOK,)]


def test_more_names_than_the_vocabulary_has_is_one_line(tmp_path, capsys):
    assert build_database.main(["--output", str(tmp_path / "a.db"), "--fictional-drugs", "9000000"]) == 2
    assert "names for" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_questions_are_about_invented_entities_only():
    entities = build_dataset.read_entities(build_database.DEFAULT_PATH)
    assert len(entities) == 520
    with sqlite3.connect(build_database.DEFAULT_PATH) as connection:
        real = {name for (name,) in connection.execute("SELECT med_name FROM drugs_info WHERE source = ?", [TEXTBOOK])}
    assert not real & {entity.name for entity in entities}


@pytest.mark.parametrize(("table", "name"), NAME_COLUMN.items())
def test_a_search_for_part_of_a_name_reads_the_index_only(database, table, name):
    with sqlite3.connect(database) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT {name} FROM {table} WHERE {name} LIKE '%a%'").fetchall()
        text = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", [table]).fetchone()[0]
    assert f"USING COVERING INDEX {table}_{name}" in plan[0][3]
    assert all(f"/* {label} */" in text for label in TABLES[table].values())


def test_a_phrasing_belongs_to_one_column():
    phrasings = [phrasing for column in QUESTIONS.values() for phrasing in column]
    assert len(phrasings) == len(set(phrasings))
    assert all("{name}" in phrasing for phrasing in phrasings)
    askable = {column for columns in ASKABLE.values() for column in columns}
    assert QUESTIONS.keys() == LABELS.keys() == askable


def test_same_seed_gives_the_same_files(database, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        assert build_dataset.main(["--database", str(database), "--output", str(folder)]) == 0
    for name in ("train.parquet", "val.parquet", "test.parquet", "qa_dataset.jsonl"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    assert sorted(path.name for path in folders[0].iterdir()) == sorted(path.name for path in folders[1].iterdir())
    assert len(list(folders[0].iterdir())) == 4


def test_committed_files_are_what_the_script_builds(committed):
    assert committed == build_dataset.make_dataset(build_database.DEFAULT_PATH)
    lines = (build_database.HERE / "qa_dataset.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [row for rows in committed.values() for row in rows]


def test_splits_share_no_entity_question_or_id(committed):
    assert {name: len(rows) for name, rows in committed.items()} == {"train": 480, "val": 64, "test": 240}
    for key in ("entities", "question", "id"):
        values = [{row[key] for row in rows} for rows in committed.values()]
        assert len(set.union(*values)) == sum(map(len, values))
    names = {split: {json.loads(row["entities"])[0] for row in rows} for split, rows in committed.items()}
    asked = "\n".join(row["question"] + row["answer"] for row in committed["train"])
    assert not [name for name in names["val"] | names["test"] if name in asked]


def test_each_split_asks_for_every_column(committed):
    askable = {column for columns in ASKABLE.values() for column in columns}
    for rows in committed.values():
        assert {json.loads(row["evidence"])[0]["field"] for row in rows} == askable
        assert {row["task_type"] for row in rows} == {"drug_field", "disease_field"}


def test_the_database_confirms_every_row(committed):
    assert check_rows([row for rows in committed.values() for row in rows], URL) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sql": "SELECT nope FROM disease"}, "gold SQL fails"),
        ({"sql": "SELECT * FROM disease"}, "more than the tool shows"),
        ({"structured_gt": '{"columns":["cause"],"rows":[["别的"]]}'}, "structured_gt says"),
        ({"evidence": '[{"table":"disease","row_id":1,"field":"cause","quote":"没有"}]'}, "evidence"),
        ({"answer": "不知道"}, "lacks the gold value"),
        ({"structured_gt": "[1]"}, "expected shape"),
        ({"structured_gt": '{"rows":[[1]]}'}, "expected shape"),
        ({"evidence": '[{"table":"disease"}]'}, "expected shape"),
        ({"evidence": '{"table":1}'}, "expected shape"),
    ],
)
def test_a_row_the_database_does_not_confirm_is_named(committed, change, message):
    row = committed["val"][0] | change
    (problem,) = check_rows([row], URL)
    assert problem.startswith(row["id"])
    assert message in problem


def test_check_command(tmp_path, capsys):
    assert check_main(["--sample", "2"]) == 0
    assert "6 rows agree" in capsys.readouterr().out
    assert check_main([str(tmp_path / "none.parquet")]) == 2


def test_existing_files_are_kept_unless_forced(database, tmp_path, capsys):
    before = database.read_bytes()
    assert build_database.main(["--output", str(database), "--seed", "7"]) == 2
    assert "--force" in capsys.readouterr().err
    assert database.read_bytes() == before
    arguments = ["--database", str(database), "--output", str(tmp_path)]
    assert build_dataset.main(arguments) == 0
    assert build_dataset.main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert build_dataset.main([*arguments, "--force"]) == 0


def test_missing_database_and_folder_are_one_line(tmp_path, capsys):
    assert build_dataset.main(["--database", str(tmp_path / "no.db"), "--output", str(tmp_path)]) == 2
    assert "data.build_database" in capsys.readouterr().err
    assert build_database.main(["--output", str(tmp_path / "no" / "folder.db")]) == 1
    assert build_dataset.main(["--output", str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err.count("\n") == 2


def test_a_failed_write_leaves_the_old_database(database, tmp_path):
    target = tmp_path / "medical.db"
    target.write_bytes(b"old")
    with pytest.raises(Exception, match="drugs_info"):
        build_database.write_database(target, {"drugs_info": [{"id": 1, "med_name": "a"}, {"id": 1, "med_name": "b"}]})
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
