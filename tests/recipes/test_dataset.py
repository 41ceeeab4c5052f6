"""The database and question files: reproducible, disjoint, confirmed by the database, the committed
ones current.

Keeps of docs/your-data.md and README.md: test questions are about what training never sees, half in
words it never saw.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter

import pytest

from recipes import build_database, build_dataset, fictional
from recipes.questions.entities import Mentions
from recipes.questions.generate import overlap
from recipes.questions.streams import MIX, STREAMS
from sql_agent import templates as words
from sql_agent.gold.checker import Checker
from sql_agent.intake.question_files import load_rows
from sql_agent.tables import FICTIONAL, NAME_COLUMN, TABLES, TEXTBOOK, write_database
from sql_agent.templates import QUESTIONS

URL = f"sqlite:///{build_database.DEFAULT_PATH}"
FILES = [build_database.DATA / f"{split}.parquet" for split in build_dataset.ROWS]


ROOT = build_database.DATA.parent
FIELD_TYPES = ("drug_field", "disease_field")
SEARCH_TYPES = ("drug_search_by_kw", "disease_to_drug")
ENDINGS = (*fictional.FORMS, *fictional.words.DISEASE_ENDINGS)


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


def test_committed_database_is_what_the_script_builds(database):
    assert dump(build_database.DEFAULT_PATH) == dump(database)


COUNTED = {
    "片": "片",
    "胶囊": "粒",
    "颗粒": "袋克",
    "丸": "丸",
    "口服液": "支毫升",
    "散": "袋克",
}  # what a form is taken in
MILLIGRAMS = range(5, 501)


def test_doses_and_strengths_are_those_of_the_form():
    for row in fictional.invent_all()["drugs_info"]:
        form = next(form for form in COUNTED if row["med_name"].endswith(form))
        strength = re.fullmatch(r".{3}素(\d+)毫克", row["component"])
        assert strength, row["component"]
        assert int(strength[1]) in MILLIGRAMS
        if row["dosage"]:
            dose = re.match(r"每次(半|\d+)(片|粒|袋|克|丸|支|毫升)，一日\d次，", row["dosage"])
            assert dose, row["dosage"]
            assert dose[2] in COUNTED[form], row["dosage"]
            assert dose[1] == "半" or int(dose[1]) <= (20 if dose[2] == "毫升" else 10)
            assert ("冲服" in row["dosage"] or "调服" in row["dosage"]) == (form in ("颗粒", "散"))


def test_more_invented_rows_move_none_of_the_first():
    first = fictional.invent_all()
    more = {
        table: list(rows)
        for table, rows in fictional.fictional_rows(fictional.SEED, 2000, 500).items()
    }
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
        found = connection.execute(
            "SELECT source, count(*) FROM drugs_info GROUP BY source"
        ).fetchall()
        assert found == [(FICTIONAL, 700), (TEXTBOOK, 82)]
        found = connection.execute("SELECT DISTINCT source FROM disease").fetchall()
        assert found == [(TEXTBOOK,)]


def test_more_names_than_the_vocabulary_has_is_one_line(tmp_path, capsys):
    assert (
        build_database.main(["--output", str(tmp_path / "a.db"), "--fictional-drugs", "9000000"])
        == 2
    )
    assert "names for" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_questions_name_invented_entities_only(committed):
    with sqlite3.connect(build_database.DEFAULT_PATH) as connection:
        find = [
            f"SELECT {column} FROM {table} WHERE source = 'textbook'"
            for table, column in NAME_COLUMN.items()
        ]
        real = Mentions(name for sql in find for (name,) in connection.execute(sql))
    rows = [row for split in committed.values() for row in split]
    assert not [row["id"] for row in rows if real.find(row["question"] + row["answer"])]


@pytest.mark.parametrize(("table", "name"), NAME_COLUMN.items())
def test_a_search_for_part_of_a_name_reads_the_index_only(database, table, name):
    with sqlite3.connect(database) as connection:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN SELECT {name} FROM {table} WHERE {name} LIKE '%a%'"
        ).fetchall()
        text = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = ?", [table]
        ).fetchone()[0]
    assert f"USING COVERING INDEX {table}_{name}" in plan[0][3]
    assert all(f"/* {label} */" in text for label in TABLES[table].values())


def forms(wordings):
    """A regular expression for every question worded so, whatever its names."""
    return [re.sub(r"\\{\w+\\}", "(.+)", re.escape(wording)) for wording in wordings]


def test_half_of_the_test_questions_are_worded_as_no_other_question_is(committed):
    groups = [words.MULTI, words.COMPARE, words.TO_DRUG]
    groups += [
        group for table in (QUESTIONS, words.SEARCH, words.COUNT) for group in table.values()
    ]
    held_out = re.compile("|".join(form for group in groups for form in forms(group.unseen)))
    for split in ("train", "val"):
        assert not [
            row["question"] for row in committed[split] if held_out.fullmatch(row["question"])
        ]
        assert {row["wording"] for row in committed[split]} == {"seen"}
    for row in committed["test"]:
        assert row["wording"] == "unseen" or not held_out.fullmatch(row["question"]), row[
            "question"
        ]
    new = [row["question"] for row in committed["test"] if row["wording"] == "unseen"]
    assert (
        sum(not held_out.fullmatch(question) for question in new) < 6
    )  # one that training may use and does not
    for kind in STREAMS:
        mine = [row["wording"] for row in committed["test"] if row["task_type"] == kind]
        assert 0.35 < mine.count("unseen") / len(mine) < 0.65, kind


@pytest.mark.nightly
def test_what_training_says_is_looked_up_in_the_training_rows_themselves(database):
    """A wording that is no held-out one, but stands in no training row, is unseen as well."""
    made = build_dataset.make_dataset(
        f"sqlite:///{database}", build_dataset.request_for({"train": 18, "test": 90})
    )
    found = Counter(row["wording"] for row in made.splits["test"])
    assert found["unseen"] > found["seen"] > 0


@pytest.mark.nightly
def test_same_seed_gives_the_same_files(database, tmp_path):
    url, folders = f"sqlite:///{database}", [tmp_path / "one", tmp_path / "two"]
    for number, folder in enumerate(folders):
        folder.mkdir()
        command = [sys.executable, "-m", "data.build_dataset", "--db", url, "--output", str(folder)]
        # Another hash seed, so that nothing depends on the order of a set.
        subprocess.run(
            command, check=True, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": str(number)}
        )
    for name in ("train.parquet", "val.parquet", "test.parquet", "qa_dataset.jsonl"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
        assert (folders[0] / name).read_bytes() == (build_database.DATA / name).read_bytes()
    assert len(list(folders[0].iterdir())) == 4


@pytest.mark.nightly
def test_a_seed_and_rates_of_misspelt_and_partial_names_give_other_questions(database, tmp_path):
    made = []
    for flags in ([], ["--seed", "1"], ["--typo-rate", "0.9"], ["--partial-rate", "0.9"]):
        folder = tmp_path / str(len(made))
        source = ["--db", f"sqlite:///{database}", "--output", str(folder), "--rows", "test=40"]
        assert build_dataset.main([*source, *flags]) == 0
        made.append((folder / "test.parquet").read_bytes())
    assert len(set(made)) == 4


def test_splits_have_the_rows_asked_for_of_every_type(committed):
    assert {name: len(rows) for name, rows in committed.items()} == build_dataset.ROWS
    for split, rows in committed.items():
        counts = Counter(row["task_type"] for row in rows)
        assert counts == build_dataset.share_out(build_dataset.ROWS[split], MIX)
        assert set(counts) == set(STREAMS)


def test_splits_share_nothing(committed):
    assert overlap(committed) == []
    for key in ("question", "id"):
        values = [{row[key] for row in rows} for rows in committed.values()]
        assert len(set.union(*values)) == sum(map(len, committed.values()))
    things = {
        split: {word for row in rows for word in json.loads(row["entities"])}
        for split, rows in committed.items()
    }
    for split, rows in committed.items():
        told = "\n".join(row["question"] + row["answer"] for row in rows)
        names = [
            name
            for other in things
            if other != split
            for name in things[other]
            if name.endswith(ENDINGS)
        ]
        assert not [name for name in names if name in told]


@pytest.mark.nightly
def test_the_database_confirms_every_row(committed):
    findings = Checker(URL).check([row for rows in committed.values() for row in rows])
    assert not [finding for finding in findings if finding.problems or finding.unchecked]


def test_most_names_are_exact_and_the_others_say_so(committed):
    fields = [row for rows in committed.values() for row in rows if row["task_type"] in FIELD_TYPES]
    called = [row for row in fields if json.loads(row["entities"])[0] not in row["question"]]
    assert called == [row for row in fields if row["difficulty"] == "hard"]
    for row in called:
        (found,) = json.loads(row["structured_gt"])["rows"]
        assert "LIKE" in row["sql"]
        assert found[0] == json.loads(row["entities"])[0]


def test_searches_find_one_to_four_and_several_of_each(committed):
    rows = [
        row for split in committed.values() for row in split if row["task_type"] in SEARCH_TYPES
    ]
    sizes = Counter(len(json.loads(row["structured_gt"])["rows"]) for row in rows)
    assert set(sizes) == {1, 2, 3, 4} or set(sizes) == {1, 2, 3}
    assert sum(count for size, count in sizes.items() if size > 1) > len(rows) / 3


def test_existing_files_are_kept_unless_forced(database, tmp_path, capsys):
    before = database.read_bytes()
    assert build_database.main(["--output", str(database), "--seed", "7"]) == 2
    assert "--force" in capsys.readouterr().err
    assert database.read_bytes() == before
    arguments = ["--db", f"sqlite:///{database}", "--output", str(tmp_path), "--rows", "60"]
    assert build_dataset.main(arguments) == 0
    assert build_dataset.main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert build_dataset.main([*arguments, "--force"]) == 0


def test_a_split_without_a_row_is_refused(tmp_path, capsys):
    """Names stand in one file only, so three drugs cannot fill three files."""
    few = tmp_path / "few.db"
    drugs = [{"id": at, "med_name": name, "storage": "密封"} for at, name in enumerate("甲乙丙", 1)]
    write_database(few, {"drugs_info": drugs, "disease": []})
    output = tmp_path / "data"
    arguments = ["--db", f"sqlite:///{few}", "--output", str(output), "--rows", "300"]
    assert build_dataset.main(arguments) == 1
    assert "would have no row" in capsys.readouterr().err
    assert not list(output.glob("*.parquet"))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--db", "sqlite:////nowhere/at/all.db"], 2, "database file"),
        (["--rows", "train=5,tset=3"], 2, "train, val, test"),
        (["--mix", "drug_fields=1"], 2, "drug_field"),
    ],
)
def test_wrong_use_is_one_line(tmp_path, capsys, arguments, code, message):
    assert build_dataset.main(["--output", str(tmp_path), *arguments]) == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_database(database, tmp_path):
    target = tmp_path / "medical.db"
    target.write_bytes(b"old")
    with pytest.raises(Exception, match="drugs_info"):
        write_database(
            target, {"drugs_info": [{"id": 1, "med_name": "a"}, {"id": 1, "med_name": "b"}]}
        )
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
