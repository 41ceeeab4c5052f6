"""A database of another shape: tool, prompt, checks and evaluation follow the tables named."""

import asyncio
import hashlib
import json
import sqlite3
from typing import Any

import pytest

from common.settings import ROOT, load_settings
from episodes.policy import ChatPolicy, Endpoint
from evaluation import evaluate
from sql_agent.agent import AGENT
from sql_agent.environment import SqlEnvironment
from sql_agent.gold import validate
from sql_agent.gold_episodes import prompt_for
from sql_agent.intake.question_files import load_rows, write_rows
from sql_agent.prompts import SYSTEM_PROMPT, TASK
from sql_agent.settings import SqlSettings
from tests.episodes.scripted import asks, says
from tests.messages import missing

SQL = "SELECT ward FROM Patients WHERE name = '甲'"
ROW = {"id": "q1", "question": "甲住哪个病区？", "sql": SQL, "entities": ["甲"]}


@pytest.fixture
def url(tmp_path):
    with sqlite3.connect(tmp_path / "hospital.db") as connection:
        connection.execute("CREATE TABLE Patients (id INTEGER PRIMARY KEY, name TEXT, ward TEXT)")
        connection.execute("CREATE TABLE salaries (id INTEGER PRIMARY KEY, amount INTEGER)")
        connection.execute("INSERT INTO Patients VALUES (1, '甲', '三病区')")
    return f"sqlite:///{tmp_path / 'hospital.db'}"


@pytest.fixture
def questions(tmp_path):
    """The user's own file: a question with its gold SQL, the answer drafted from it."""
    source = tmp_path / "my.jsonl"
    source.write_text(json.dumps(ROW, ensure_ascii=False) + "\n", encoding="utf-8")
    return source


def opened(url: str, **options: Any) -> SqlEnvironment:
    found = AGENT.open(SqlSettings(_env_file=None, database_url=url), options)
    assert isinstance(found, SqlEnvironment)
    return found


def test_the_policy_reads_the_tables_named_and_may_query_no_other(llm, url, questions):
    environment = opened(url, database_tables="Patients")
    task = AGENT.task(AGENT.rows(questions)[0], environment.settings)
    llm.script(asks("SELECT amount FROM salaries"), asks(SQL), says("三病区"))
    policy = ChatPolicy(Endpoint(llm.base_url, "tiny"), 3)
    episode = asyncio.run(environment.play(task, policy))
    assert llm.requests[0]["messages"][0]["content"] == f"{TASK}\npatients(id, name, ward)"
    assert [query.result.ok for query in episode.events] == [False, True]
    reward = asyncio.run(environment.score(task, episode))
    assert reward.terms["rule"] == 0.1
    assert environment.description()["tables"] == ["patients"]


def test_one_of_our_tables_is_named_as_ever(llm, database_url):
    llm.script(says("好"))
    environment = opened(database_url, database_tables="disease")
    task = AGENT.task(AGENT.rows(AGENT.splits["val"])[0], environment.settings)
    asyncio.run(environment.play(task, ChatPolicy(Endpoint(llm.base_url, "tiny"), 1)))
    (_, _, line) = SYSTEM_PROMPT.splitlines()
    assert llm.requests[0]["messages"][0]["content"] == f"{TASK}\n{line}"
    assert prompt_for(opened(database_url).tool) == SYSTEM_PROMPT
    digest = "0dbff69965cceb3dd63b6d1f6539441fe49434e43317f7dc6e8468da68682735"
    assert hashlib.sha256(SYSTEM_PROMPT.encode()).hexdigest() == digest, (
        "raise PROMPT_VERSION, rebuild the bundled model"
    )


def test_questions_with_gold_sql_are_validated_and_evaluated(
    url, questions, tmp_path, capsys, monkeypatch
):
    named = ["--db", url, "--tables", "patients"]
    assert validate.main([str(questions), *named, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["valid"], report["database"]) == (1, url)
    monkeypatch.setenv("DATABASE_URL", url)
    load_settings.cache_clear()
    arguments = [
        "sql",
        "--gold",
        "--data",
        str(questions),
        "--tables",
        "patients",
        "--out",
        str(tmp_path / "out"),
    ]
    assert evaluate.main(arguments) == 0
    scores = json.loads((tmp_path / "out" / "scores.json").read_text(encoding="utf-8"))
    assert scores["overall"]["score"] == 1


def test_training_checks_and_demonstrations_follow_too(url, questions):
    settings = SqlSettings(_env_file=None, database_url=url).under(
        {"database_tables": "patients", "other": 1}
    )
    rows = AGENT.rows(questions)
    notes = AGENT.check({"train": rows}, settings, {})
    assert "1 answers drafted" in notes[0]
    assert len(notes) == 1, "the database confirms the question"
    (conversation,) = AGENT.demonstrations("policy", rows, settings)
    assert "三病区" in conversation.messages[-1]["content"]


def test_an_evaluation_on_another_database_than_the_questions_is_refused(tmp_path, capsys):
    """Most of them would be answered with "nothing found", and gold would say that all is well."""
    rows = load_rows(ROOT / "data" / "test.parquet")
    own = [row for row in rows if row["task_type"] == "drug_field" and "= '" in row["sql"]][:8]
    for row in own:
        row["sql"] = row["sql"].replace("= '", "= '另")
    write_rows(own, tmp_path / "own.jsonl")
    flags = ["--data", str(tmp_path / "own.jsonl"), "--gold", "--out", str(tmp_path / "out")]
    assert evaluate.main(["sql", *flags]) == 2
    assert not missing(capsys.readouterr().err, "8 of 8", "DATABASE_URL")
