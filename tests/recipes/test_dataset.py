"""The bundled database and questions: reproducible, disjoint, confirmed by the database."""

import json
import os
import re
import sqlite3

import pytest

from episodes.episode import AgentError
from recipes import build_database, build_dataset, fictional
from recipes.questions import wordings as words
from recipes.questions.entities import Mentions
from recipes.questions.generate import overlap
from recipes.questions.streams import STREAMS
from sql_agent.agent import AGENT
from sql_agent.gold.checker import Checker
from sql_agent.intake.question_files import load_rows, made_from
from sql_agent.settings import SqlSettings
from sql_agent.tables import NAME_COLUMN
from tests.corpora import cases_of
from tests.messages import missing
from tests.programs import python

URL = f"sqlite:///{build_database.DEFAULT_PATH}"
FILES = [build_database.DATA / f"{split}.parquet" for split in build_dataset.ROWS]
ENDINGS = (*fictional.FORMS, *fictional.words.DISEASE_ENDINGS)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "medical.db"
    assert build_database.main(["--output", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def committed():
    return {path.stem: load_rows(path) for path in FILES}


def test_committed_database_is_what_the_script_builds(database):
    paths = (build_database.DEFAULT_PATH, database)
    bundled, built = (list(sqlite3.connect(path).iterdump()) for path in paths)
    assert bundled == built


def test_no_row_contradicts_itself(tmp_path):
    more = ["--fictional-drugs", "800", "--fictional-diseases", "600"]
    assert build_database.main(["--output", str(tmp_path / "large.db"), *more]) == 0
    connection = sqlite3.connect(tmp_path / "large.db")
    for impossible in cases_of(__file__, "impossible_drugs"):
        assert connection.execute(impossible).fetchall() == [], impossible


def test_questions_name_invented_entities_only(committed):
    names = []
    with sqlite3.connect(build_database.DEFAULT_PATH) as connection:
        for table, column in NAME_COLUMN.items():
            find = f"SELECT {column} FROM {table} WHERE source = 'textbook'"
            names += [name for (name,) in connection.execute(find)]
    real = Mentions(names)
    for rows in committed.values():
        assert not [row["id"] for row in rows if real.find(row["question"] + row["answer"])]


def forms(wordings):
    """A regular expression for every question worded so, whatever its names."""
    return [re.sub(r"\\{\w+\\}", "(.+)", re.escape(wording)) for wording in wordings]


def test_half_of_the_test_questions_are_worded_as_no_other_question_is(committed):
    groups = [words.MULTI, words.COMPARE, words.TO_DRUG]
    for table in (words.QUESTIONS, words.SEARCH, words.COUNT):
        groups += table.values()
    held_out = re.compile("|".join(form for group in groups for form in forms(group.unseen)))
    for rows in committed.values():
        seen = [row["question"] for row in rows if row["wording"] == "seen"]
        assert not [question for question in seen if held_out.fullmatch(question)]
    assert {row["wording"] for row in committed["train"] + committed["val"]} == {"seen"}
    new = [row["question"] for row in committed["test"] if row["wording"] == "unseen"]
    # One that training may use and does not
    assert sum(not held_out.fullmatch(question) for question in new) < 6
    for kind in STREAMS:
        mine = [row["wording"] for row in committed["test"] if row["task_type"] == kind]
        assert 0.35 < mine.count("unseen") / len(mine) < 0.65, kind


@pytest.mark.nightly
def test_same_seed_gives_the_same_files(database, committed, tmp_path):
    url, folders = f"sqlite:///{database}", [tmp_path / "one", tmp_path / "two"]
    for number, folder in enumerate(folders):
        folder.mkdir()
        # Another hash seed, so that nothing depends on the order of a set.
        env = os.environ | {"PYTHONHASHSEED": str(number)}
        python("-m", "data.build_dataset", "--db", url, "--output", folder, env=env, check=True)
    one, two = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert one == two
    assert {*one} == {*(path.name for path in FILES), "qa_dataset.jsonl"}
    for split, rows in committed.items():  # the bytes differ: they name another database
        assert load_rows(folders[0] / f"{split}.parquet") == rows


def test_splits_share_nothing(committed):
    assert overlap(committed) == []
    for key in ("question", "id"):
        values = [{row[key] for row in rows} for rows in committed.values()]
        assert len(set.union(*values)) == sum(map(len, committed.values()))
    told = {
        split: "\n".join(row["question"] + row["answer"] for row in rows)
        for split, rows in committed.items()
    }
    for split, rows in committed.items():
        for row in rows:
            for name in json.loads(row["entities"]):
                named = {other for other in told if name.endswith(ENDINGS) and name in told[other]}
                assert named <= {split}, name


@pytest.mark.nightly
def test_the_database_confirms_every_row(committed):
    findings = Checker(URL).check([row for rows in committed.values() for row in rows])
    assert not [finding for finding in findings if finding.problems or finding.unchecked]


def test_existing_files_are_kept_unless_forced(database, tmp_path, capsys):
    before = database.read_bytes()
    assert build_database.main(["--output", str(database), "--seed", "7"]) == 2
    assert "--force" in capsys.readouterr().err
    assert database.read_bytes() == before
    relative = os.path.relpath(database)
    arguments = ["--db", f"sqlite:///{relative}", "--output", str(tmp_path), "--rows", "60"]
    assert build_dataset.main(arguments) == 0
    assert made_from(tmp_path / "train.parquet") == f"sqlite:///{database}"
    assert build_dataset.main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert build_dataset.main([*arguments, "--force"]) == 0


def test_questions_of_another_database_never_replace_the_bundled_ones(database, capsys):
    assert build_dataset.main(["--db", f"sqlite:///{database}"]) == 2
    assert "--output my/data" in capsys.readouterr().err


def test_a_split_without_a_row_is_refused(tmp_path, capsys):
    """Names stand in one file only, so three drugs cannot fill three files."""
    few = tmp_path / "few.db"
    drugs = [{"id": at, "med_name": name, "storage": "密封"} for at, name in enumerate("甲乙丙", 1)]
    build_database.write_database(few, {"drugs_info": drugs, "disease": []})
    output = tmp_path / "data"
    arguments = ["--db", f"sqlite:///{few}", "--output", str(output), "--rows", "300"]
    assert build_dataset.main(arguments) == 1
    said = capsys.readouterr().err
    assert "would have no row" in said
    assert "LLM" not in said, "none was asked"
    assert not output.exists()


def test_a_failed_write_leaves_the_old_database(database, tmp_path):
    target = tmp_path / "medical.db"
    target.write_bytes(b"old")
    same = [{"id": 1, "med_name": name} for name in "ab"]
    with pytest.raises(Exception, match="drugs_info"):
        build_database.write_database(target, {"drugs_info": same})
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_rows_whose_names_no_question_can_bear_are_counted(tmp_path, capsys):
    names = [f"{first}{second}片" for first in "甲乙丙" for second in "明清润舒泰和"]
    rows = [
        {"id": at, "med_name": name, "storage": f"密封{at}"}
        for at, name in enumerate([*names, *names, "O'Neil片", "一" * 41], start=1)
    ]
    rows[35]["med_name"] = "丙 和片"  # as people write it too
    url = f"sqlite:///{tmp_path}/own.db"
    output = ["--output", str(tmp_path / "questions"), "--rows", "train=5"]
    build_database.write_database(tmp_path / "own.db", {"drugs_info": rows[18:], "disease": []})
    assert build_dataset.main(["--db", url, *output]) == 0
    assert not missing(capsys.readouterr().out, "0 of 20 rows of drugs_info", "2 have a name")
    (tmp_path / "own.db").unlink()
    build_database.write_database(tmp_path / "own.db", {"drugs_info": rows[:36], "disease": []})
    assert build_dataset.main(["--db", url, *output, "--force"]) == 1
    assert not missing(capsys.readouterr().err, "36 of 36 rows of drugs_info")


def test_eye_drops_are_not_eaten_and_columns_without_a_wording_are_named(tmp_path, capsys):
    drops = [f"{first}{second}滴眼液" for first in "甲乙丙丁戊" for second in "明清润舒泰和"]
    rows, diseases = [], []
    for at, name in enumerate(drops, start=1):
        told = {"dosage": f"滴眼，一次{at}滴", "storage": f"密封{at}", "pack": "5ml"}
        rows.append({"id": at, "med_name": name, **told})
        told = {"cause": f"受凉{at}", "overview": f"常见{at}"}
        diseases.append({"id": at, "disease_name": f"{name}氏病", **told})
    build_database.write_database(tmp_path / "drops.db", {"drugs_info": rows, "disease": diseases})
    url = f"sqlite:///{tmp_path}/drops.db"
    output = tmp_path / "questions"
    arguments = ["--db", url, "--output", str(output), "--rows", "train=200,val=10,test=30"]
    assert build_dataset.main(arguments) == 0
    assert "pack" in capsys.readouterr().out
    made = [row["question"] for path in output.glob("*.parquet") for row in load_rows(path)]
    about = [question for question in made if "滴眼液" in question]
    assert len(about) > 20
    assert not [question for question in about if "吃" in question or "服" in question]


def test_rows_of_another_database_end_a_run_and_name_theirs(tmp_path):
    rows = [
        {"id": at, "med_name": f"{name}片", "storage": f"密封{at}"}
        for at, name in enumerate("甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉", start=1)
    ]
    build_database.write_database(tmp_path / "own.db", {"drugs_info": rows, "disease": []})
    url = f"sqlite:///{tmp_path}/own.db"
    output = tmp_path / "questions"
    assert build_dataset.main(["--db", url, "--output", str(output), "--rows", "train=20"]) == 0
    made = {"train": AGENT.rows(output / "train.parquet")}
    settings = SqlSettings(_env_file=None)
    with pytest.raises(AgentError) as refused:
        AGENT.check(made, settings, {})
    assert not missing(str(refused.value), "DATABASE_URL", url, "medical.db")
    assert AGENT.check(made, settings.model_copy(update={"database_url": url}), {})
