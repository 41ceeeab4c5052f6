"""EHRSQL's questions are played on a database that is drawn from their own statements.

Schema, questions and statements are written for these tests, in the published form.
"""

import asyncio
import io
import json
import sqlite3
import sys
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from common.settings import Settings
from episodes.episode import Episode
from evaluation import check_judge, play, serve
from evaluation.evaluate import main
from sql_agent.agent import AGENT
from sql_agent.ehrsql import questions as ehrsql_questions
from sql_agent.ehrsql.environment import EhrsqlEnvironment
from sql_agent.ehrsql.published import EHRSQL, EHRSQL_2024
from sql_agent.ehrsql.questions import prepare
from sql_agent.intake.question_files import load_rows
from sql_agent.reward import Query
from sql_agent.task import SqlTask, task_of
from tests.corpora import cases_of
from tests.episodes.scripted import ScriptedPolicy, asks, says
from tests.messages import missing
from tests.runs import free_port
from training.start.command import main as train

SCHEMA = Path(__file__).with_name("ehrsql_ward.sql").read_text(encoding="utf-8")
ROWS = cases_of(__file__, "ehrsql_questions")
GOLD = {row["id"]: row["query"] for row in ROWS}
UNUSABLE = ("yes", "never", "gone", "unknown")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(ehrsql_questions, "FOLDER", tmp_path / "drawn")


def files(folder: Path, questions: Any = ROWS, name: str = "ward.json") -> tuple[Path, Path]:
    text = questions if isinstance(questions, str) else json.dumps(questions)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "ward.sql").write_text(SCHEMA, encoding="utf-8")
    return folder / name, folder / "ward.sql"


def evaluate(data: Path, schema: Path, *flags: str) -> int:
    return main(
        ["sql", "--data", str(data), "--schema", str(schema), "--out", f"{data}.out", *flags]
    )


@pytest.fixture
def environment(tmp_path):
    data, schema = files(tmp_path)
    return EhrsqlEnvironment(prepare([data], schema).folder)


def tasks_of(environment: EhrsqlEnvironment) -> dict[str, SqlTask]:
    return {row["id"]: task_of(row) for row in load_rows(environment.set.questions[0])}


def played(environment: EhrsqlEnvironment, answer: str | None, *statements: str) -> Episode:
    tool = environment.tool
    queries = [Query.run(sql, tool) for sql in statements]
    stop = "answered" if answer else "no_answer"
    return Episode(answer=answer, stop_reason=stop, events=queries)


def test_gold_is_100_and_what_cannot_be_asked_is_counted(tmp_path, capsys):
    data, schema = files(tmp_path)
    assert evaluate(data, schema, "--gold") == 0
    said = capsys.readouterr().err
    assert not missing(said, "EHRSQL: 7 rows", "1 of them", "4 are not", "doctors", "decade")
    scores = json.loads((tmp_path / "ward.json.out" / "scores.json").read_text())
    assert scores["overall"]["score"] == 1.0


def test_what_was_scored_is_recorded_without_the_database(environment, monkeypatch):
    task = tasks_of(environment)["ages"]
    right, lost = played(environment, "So many.", *task.sql), played(environment, "So many.")
    assert asyncio.run(environment.score(task, right)).score == 1.0
    monkeypatch.setattr(environment, "whole", None)
    names = ("execution_accuracy", "RS(0)", "RS(10)")
    found = [environment.record(task, episode)["facts"] for episode in (right, lost)]
    assert [[facts[name] for name in names] for facts in found] == [[1.0] * 3, [None] * 3]


def test_the_same_files_give_the_same_database_and_another_schema_another(tmp_path):
    """The statements would run on tables that the new schema does not have."""
    data, schema = files(tmp_path)
    prepared = prepare([data], schema)
    first = list(sqlite3.connect(prepared.database).iterdump())
    (prepared.folder / "set.json").unlink()  # as after a kill in the middle
    assert prepare([data], schema) == prepared
    assert list(sqlite3.connect(prepared.database).iterdump()) == first
    schema.write_text(SCHEMA.replace("SEX VARCHAR(5)", "GENDER VARCHAR(5)"), encoding="utf-8")
    assert prepare([data], schema).folder != prepared.folder


def test_a_key_without_columns_and_a_statement_with_a_parameter_are_read(tmp_path):
    row = {"question": "which?", "query": "select visit_id from visits where age = :age"}
    data, schema = files(tmp_path, [*ROWS, row])
    schema.write_text(SCHEMA.replace("REFERENCES PERSONS(PERSON_ID)", "REFERENCES PERSONS"))
    assert prepare([data], schema).questions


def test_what_is_handed_in_is_the_last_statement_that_ran(environment):
    tasks = tasks_of(environment)
    gold = tasks["last"].sql[0]
    other = "SELECT number + 1 FROM results LIMIT 1"

    def score(task: str, answer: str | None, *statements: str) -> float | None:
        episode = played(environment, answer, *statements)
        return asyncio.run(environment.score(tasks[task], episode)).score

    assert score("last", "It is this.", other, gold) == 1.0
    assert score("last", "It is this.", gold, "SELECT nothing FROM nowhere") == 1.0
    assert score("last", "It is this.", gold, other) == 0.0
    assert score("last", "It is this.") == 0.0
    assert score("last", "null", gold) == 0.0
    assert score("last", None, gold) == 0.0
    for nothing in cases_of(__file__, "ehrsql_silence"):
        assert score("who", nothing) == 1.0, nothing
        assert score("last", nothing, gold) == 0.0, nothing
    assert score("who", "Dr. Lee is on duty.", gold) == 0.0
    assert score("who", None) == 0.0
    for sentence in cases_of(__file__, "ehrsql_answers"):
        assert score("last", sentence, gold) == 1.0, sentence
        assert score("who", sentence, gold) == 0.0, sentence


def test_statements_run_as_the_benchmarks_run_them():
    published = "SELECT A FROM T WHERE X > = current_time AND strftime('%y',B) < = '2100'"
    assert EHRSQL.as_run(published) == (
        "select a from t where x >= '2105-12-31 23:59:00' and strftime('%Y',b) <= '2100'"
    )
    assert EHRSQL_2024.as_run(f"  {published}\n") == (
        "SELECT A FROM T WHERE X >= '2100-12-31 23:59:00' AND strftime('%Y',B) <= '2100'"
    )
    assert EHRSQL.as_run("x between heart_rate_lower and heart_rate_upper") == (
        "x between 60.0 and 100.0"
    )


def test_results_are_compared_as_the_benchmarks_compare_them():
    assert EHRSQL.answer([("b", 1), ("a", 2)]) == EHRSQL.answer([("a", 3), ("b", 4)])
    assert EHRSQL.answer([(1.0,)]) != EHRSQL.answer([(1.01,)])
    assert EHRSQL_2024.answer([("b", 1), ("a", 2)]) != EHRSQL_2024.answer([("a", 3), ("b", 4)])
    assert EHRSQL_2024.answer([(1.04,)]) == EHRSQL_2024.answer([(1.0,)])
    many = [(f"{number:03}",) for number in range(101)]
    assert EHRSQL_2024.answer(many) == EHRSQL_2024.answer(many[:-1])
    assert EHRSQL_2024.answer(many) == EHRSQL_2024.answer(many[::-1])


@pytest.mark.parametrize("given", ["label.json", "data.json"])
def test_the_two_files_of_2024_are_read_together(given, tmp_path, capsys):
    labels = {"ages": f"{GOLD['ages'].upper()};"}
    asked = [{"id": name, "question": f"{name}?"} for name in ("ages", "who")]
    files(tmp_path, {"version": "1", "data": asked}, "data.json")
    _, schema = files(tmp_path, labels | {"who": "null"}, "label.json")
    assert evaluate(tmp_path / given, schema, "--gold") == 0
    assert "EHRSQL-2024: 2 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("questions", "seen"),
    [
        (json.dumps(ROWS)[:300], "ward.json"),
        ([{"question": "Which?", "options": {"A": "none"}}], "EHRSQL"),
        ([{"question": "", "query": "select 1 from visits"}], "row 0"),
        ([*ROWS, ROWS[0]], "'count'"),
        ([row for row in ROWS if row["id"] in (*UNUSABLE, "who")], "no usable question"),
        ({"count": GOLD["count"]}, "data.json"),
        (None, "CREATE TABLE"),
    ],
)
def test_another_file_is_one_line(questions, seen, tmp_path, capsys):
    data, schema = files(tmp_path, questions or ROWS)
    if questions is None:
        schema.write_text(f"ATTACH '{tmp_path}/made.db' AS made; CREATE TABLE made.t (a);")
    assert evaluate(data, schema, "--gold") == 2
    [said] = capsys.readouterr().err.strip().splitlines()
    assert seen in said
    assert not (tmp_path / "made.db").exists()


def own_database(folder: Path) -> Path:
    """A user's own database of the ward: one person of two visits, one without an age."""
    path = folder / "own.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA.replace("AGE INT NOT NULL", "AGE INT"))
        connection.execute("INSERT INTO PERSONS VALUES (1, 7, 'f')")
        visit = "INSERT INTO VISITS VALUES (?, 7, ?, '2103-01-01 10:00:00', NULL, ?)"
        connection.executemany(visit, [(1, 70, 44), (2, 71, None)])
    return path


def test_a_users_own_database_is_scored_as_the_benchmark_scores(tmp_path, capsys):
    """Gold that is empty, a constant or fails counts there, too; a wrong result costs ten."""
    database = own_database(tmp_path)
    data, _ = files(tmp_path)
    out = tmp_path / "out"
    flags = ["--database", str(database), "--data", str(data), "--out", str(out)]
    assert main(["sql", "--gold", *flags]) == 0
    assert "11 rows are usable" in capsys.readouterr().err
    overall = json.loads((out / "scores.json").read_text())["overall"]
    right = 9 / 11  # `gone` and `unknown` fail
    assert (overall["RS(0)"], overall["RS(10)"]) == pytest.approx((right, right - 20 / 11))
    assert main(["sql", "--baseline", "at_once", *flags, "--force"]) == 0
    overall = json.loads((out / "scores.json").read_text())["overall"]
    assert (overall["RS(0)"], overall["RS(10)"]) == pytest.approx((1 / 11, 1 / 11))


def test_a_users_database_shows_its_views_and_none_of_sqlites_own_tables(tmp_path):
    """Its folder may have a name that a URL would take for options."""
    folder = tmp_path / "what? #1 50%25"
    folder.mkdir()
    database = own_database(folder)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT)")
        connection.execute("CREATE VIEW elderly AS SELECT * FROM visits WHERE age > 40")
        connection.commit()
    prepared = prepare([files(tmp_path)[0]], database=database)
    prompt = EhrsqlEnvironment(prepared.folder).prompt
    assert "elderly" in prompt
    assert "sqlite_" not in prompt
    assert prepared.tool().run("SELECT visit_id FROM elderly").rows == [[70]]


@pytest.mark.parametrize("content", [None, b"", b"no database"])
def test_a_file_that_is_no_database_is_one_line(content, tmp_path, capsys):
    data, _ = files(tmp_path)
    path = tmp_path / "own.sqlite"
    if content is not None:
        path.write_bytes(content)
    assert main(["sql", "--gold", "--data", str(data), "--database", str(path)]) == 2
    [said] = capsys.readouterr().err.strip().splitlines()
    assert "own.sqlite" in said


def test_without_a_schema_the_questions_are_not_played_on_another_database(tmp_path, capsys):
    data, _ = files(tmp_path)
    assert main(["sql", "--data", str(data), "--gold"]) == 2
    assert "--schema" in capsys.readouterr().err


def test_every_command_that_plays_takes_the_schema(tmp_path, monkeypatch, capsys):
    data, schema = files(tmp_path)
    given = ["sql", "--data", str(data), "--schema", str(schema)]
    monkeypatch.setattr(sys, "stdin", io.StringIO("null\n"))
    assert play.main([*given, "--task", "who"]) == 0
    assert "reward: 1.000" in capsys.readouterr().out
    assert check_judge.main(given) == 0
    assert "7 questions of EHRSQL" in capsys.readouterr().err


@pytest.mark.parametrize("main", [play.main, check_judge.main, serve.main])
def test_no_command_plays_another_database_than_the_named_one(tmp_path, main, capsys):
    data, _ = files(tmp_path)
    model = ["gpt", "--base-url", "http://127.0.0.1:9/v1"] if main is serve.main else []
    missing_one = str(tmp_path / "missing.db")
    assert main(["sql", *model, "--data", str(data), "--database", missing_one]) == 2
    assert main(["sql", *model, "--database", missing_one]) == 2
    assert not missing(capsys.readouterr().err, missing_one, "--data")


def test_the_tool_takes_the_words_of_the_benchmark(environment):
    task = tasks_of(environment)["today"]
    policy = ScriptedPolicy(asks(GOLD["today"]), says("It is the lowest value."))
    episode = asyncio.run(environment.play(task, policy))
    assert asyncio.run(environment.score(task, episode)).score == 1.0


def two_files(folder: Path) -> list[Path]:
    """The questions of `ROWS` in EHRSQL-2024's form, as a part to learn from and one to validate."""
    found = []
    for part in ("train", "valid"):
        (folder / part).mkdir()
        asked = [{"id": row["id"], "question": row["question"]} for row in ROWS]
        (folder / part / "data.json").write_text(json.dumps({"version": "x", "data": asked}))
        (folder / part / "label.json").write_text(json.dumps(GOLD))
        found.append(folder / part / "label.json")
    (folder / "ward.sql").write_text(SCHEMA, encoding="utf-8")
    return found


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """The training command up to its engine."""
    monkeypatch.setenv("AGL_SERVER_PORT", str(free_port()))
    monkeypatch.setattr("training.start.command.run", lambda *_: 0)
    monkeypatch.setattr("training.setup.device.built_for", lambda: "cpu")
    own = ["--ci-fast", "--device", "cpu", "data.train_batch_size=2"]
    return lambda *flags: train("sql", [*flags, *own, "--run-dir", str(tmp_path / "run")])


def test_a_run_trains_and_validates_on_one_database(tmp_path, begin, capsys):
    """The prepared files that are named then need no flag, in a warm-up either."""
    train, valid = two_files(tmp_path)
    given = ["--train-file", str(train), "--val-file", str(valid)]
    assert begin(*given, "--schema", str(tmp_path / "ward.sql")) == 0
    said = capsys.readouterr()
    assert not missing(said.out, "train: 6 questions of EHRSQL", "val: 6")
    folder = next((tmp_path / "drawn").iterdir())
    rows = {name: folder / f"{name}_label.jsonl" for name in ("train", "valid")}
    assert not missing(said.err, *rows.values())
    arguments = Namespace(schema=None, database=None, data=rows["valid"])
    AGENT.complete(arguments)
    assert arguments.schema == folder
    learned = list(AGENT.demonstrations("policy", AGENT.rows(rows["train"]), Settings()))
    last = learned[1].messages
    assert GOLD["last"].split()[1] in last[2]["tool_calls"][0]["function"]["arguments"]
    assert learned[-1].messages[-1]["content"] == "null"
    copied = str(tmp_path / "run" / "data" / "val.jsonl")
    assert main(["sql", "--data", copied, "--gold"]) == 2, "on another database"
    assert str(folder) in capsys.readouterr().err
    same = ["--train-file", str(train), "--val-file", str(train)]
    assert begin(*same, "--schema", str(tmp_path / "ward.sql")) == 0


@pytest.mark.parametrize("other", ["plain", "2022"])
def test_files_of_two_kinds_are_refused(tmp_path, begin, capsys, other):
    train, valid = two_files(tmp_path)
    prepared = prepare([train, valid], tmp_path / "ward.sql")
    if other == "plain":
        given = ["--train-file", str(prepared.questions[0]), "--val-file", "data/val.parquet"]
    else:
        data, schema = files(tmp_path)
        given = ["--train-file", str(data), "--val-file", str(valid), "--schema", str(schema)]
    assert begin(*given) == 2
    assert not missing(capsys.readouterr().err, *given[1:4:2])


def test_an_impossible_question_of_another_word_and_a_file_of_another_kind(tmp_path, begin, capsys):
    told = {"id": "told", "question": "Who was it?", "query": "nan", "is_impossible": True}
    data, schema = files(tmp_path, [*ROWS, told])
    assert evaluate(data, schema, "--gold") == 0
    assert not missing(capsys.readouterr().err, "2 of them without an answer")
    assert begin("--train-file", str(data), "--schema", str(schema)) == 2
    assert not missing(capsys.readouterr().err, "val")
    other = ["--train-file", str(data), "--val-file", "data/val.parquet", "--schema", str(schema)]
    assert begin(*other) == 2
    assert not missing(capsys.readouterr().err, "data/val.parquet", "--val-file")
