"""The SQL agent's episodes through the real loop, tool, database and offline judge."""

import asyncio
import hashlib
import json
import sqlite3
import time
from typing import Any

import pytest

from common.settings import ROOT, load_settings
from episodes.episode import Episode, ServiceError
from episodes.outcomes import EpisodeError
from episodes.policy import ChatPolicy, Endpoint
from evaluation import evaluate
from scoring.rubric import Rubric
from sql_agent.agent import AGENT
from sql_agent.environment import SqlEnvironment
from sql_agent.gold import validate
from sql_agent.gold_episodes import prompt_for
from sql_agent.intake import question_files
from sql_agent.intake.question_files import load_rows, write_rows
from sql_agent.prompts import PROMPT_VERSION, SYSTEM_PROMPT, TASK
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask, task_of
from tests.corpora import cases_of
from tests.episodes.scripted import asks, says
from tests.messages import missing
from tests.sql_agent.small_database import STORAGE
from tools.sql.errors import DatabaseError, MachineTooSlow

SQL = "SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'"
ROW = dict.fromkeys(question_files.COLUMNS, "") | {
    "id": "q0",
    "question": "朵莎洛片怎么保存？",
    "answer": f"朵莎洛片的贮藏方法：{STORAGE}",
    "sql": SQL,
    "structured_gt": json.dumps({"columns": ["storage"], "rows": [[STORAGE]]}),
}
STORED = task_of(ROW)


def opened(url: str, evaluating: bool = False, **settings: Any) -> SqlEnvironment:
    found = AGENT.open(SqlSettings(_env_file=None, database_url=url, **settings), {}, evaluating)
    assert isinstance(found, SqlEnvironment)
    return found


def play(llm: Any, environment: SqlEnvironment, task: SqlTask = STORED) -> Episode:
    return asyncio.run(environment.play(task, ChatPolicy(Endpoint(llm.base_url, "tiny"), 3)))


def test_an_evaluation_pays_by_the_factors_of_the_run_and_asks_the_judge_beside(database_url):
    environment = opened(database_url, evaluating=True, reward_terms="execution=1*format")
    rubric = Rubric({"execution": 1.0, "judge": 1.0}, {"execution": ["format"]})
    assert environment.rubric == rubric
    first = environment.tool.run("SELECT julianday('now')").rows
    time.sleep(0.01)  # SQLite's clock has milliseconds
    assert environment.tool.run("SELECT julianday('now')").rows != first


def test_a_wrong_query_is_told_to_the_policy_and_the_requests_extend_each_other(llm, database_url):
    llm.script(asks("SELECT nothing FROM drugs_info"), asks(SQL), says("好"))
    episode = play(llm, opened(database_url))
    assert [query.result.ok for query in episode.events] == [False, True]
    first, second, third = (request["messages"] for request in llm.requests)
    assert json.loads(second[-1]["content"])["status"] == "error"
    assert third[: len(second)] == second
    assert second[: len(first)] == first
    assert [request.get("tool_choice") for request in llm.requests] == [None, None, "none"]


def test_a_database_that_is_gone_raises_and_is_not_told_to_the_policy(llm, tmp_path):
    llm.script(asks(SQL), says("好"))
    with pytest.raises(EpisodeError) as caught:
        play(llm, opened(f"sqlite:///{tmp_path}/gone.db"))
    assert caught.value.cause == "database_error"
    assert len(llm.requests) == 1


def test_a_machine_that_is_too_slow_is_not_called_a_database_that_failed(database_url, monkeypatch):
    def slow(sql: str) -> None:
        raise MachineTooSlow("3 tries of a statement")

    environment = opened(database_url)
    monkeypatch.setattr(environment.tool, "run", slow)
    with pytest.raises(EpisodeError) as caught:
        asyncio.run(environment.gold(STORED))
    assert caught.value.cause == "machine_too_slow"


def test_the_description_has_what_scores_depend_on_and_no_secret():
    found = opened("postgresql://user:secret@host/db", teacher_model="m").description()
    assert found == {
        "prompt_version": PROMPT_VERSION,
        "database": "postgresql://user:***@host/db",
        "judge": "m, words 2",
        "terms": {"rule": 0.1, "judge": 1.0},
        "factors": {"judge": ["format"]},
    }


def test_another_reward_model_or_scale_is_another_condition(tmp_path):
    scale = tmp_path / "scale.json"
    scale.write_text('{"center": 0, "scale": 1}')
    judges = [
        {"reward_model_url": "http://key:secret@a/score"},
        {"reward_model_url": "http://b/score"},
        {"reward_model_url": "http://b/score", "reward_scale": scale},
    ]
    found = {opened("sqlite://", **judge).description()["judge"] for judge in judges}
    assert len(found) == 3
    assert "secret" not in "".join(found)


def test_what_does_not_answer_is_said_before_anything_is_loaded(tmp_path, database_url):
    asyncio.run(opened(database_url).check())
    with pytest.raises(DatabaseError, match=r"gone\.db"):
        asyncio.run(opened(f"sqlite:///{tmp_path}/gone.db").check())
    judge = {"reward_model_url": "http://127.0.0.1:9/score", "judge_timeout": 0.5}
    with pytest.raises(ServiceError, match="TEACHER_MODEL"):
        asyncio.run(opened(database_url, **judge).check())
    asyncio.run(opened(database_url, reward_terms="rule=1", **judge).check())


def test_where_only_weights_are_made_answers_are_drafted_without_a_database(tmp_path):
    """The runners get the trainer's rows: a missing answer would leave every episode unscored."""
    settings = SqlSettings(database_url=f"sqlite:///{tmp_path}/gone.db")
    row = {**ROW, "answer": "", "evidence": "", "entities": ""}
    notes = AGENT.check({"train": [row]}, settings, {}, plays=False)
    assert row["answer"]
    assert "1 answers drafted" in notes[0]
    with pytest.raises(DatabaseError, match=r"gone\.db"):
        AGENT.check({"train": [row]}, settings, {})


@pytest.mark.parametrize(("kind", "found"), cases_of(__file__, "kinds"))
def test_an_episode_has_the_kind_the_page_defines(kind, found):
    assert AGENT.failure(found) == kind


# A database of another shape
WARD = "SELECT ward FROM Patients WHERE name = '甲'"
IN_WARD = {"id": "q1", "question": "甲住哪个病区？", "sql": WARD, "entities": ["甲"]}


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
    source.write_text(json.dumps(IN_WARD, ensure_ascii=False) + "\n", encoding="utf-8")
    return source


def test_the_policy_reads_the_tables_named_and_may_query_no_other(llm, url, questions):
    environment = opened(url, database_tables="Patients")
    task = AGENT.task(AGENT.rows(questions)[0], environment.settings)
    llm.script(asks("SELECT amount FROM salaries"), asks(WARD), says("三病区"))
    episode = play(llm, environment, task)
    assert llm.requests[0]["messages"][0]["content"] == f"{TASK}\npatients(id, name, ward)"
    assert [query.result.ok for query in episode.events] == [False, True]
    reward = asyncio.run(environment.score(task, episode))
    assert reward.terms["rule"] == 0.1
    assert environment.description()["tables"] == ["patients"]


def test_one_of_our_tables_is_named_as_ever(llm, database_url):
    llm.script(says("好"))
    environment = opened(database_url, database_tables="disease")
    play(llm, environment)
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
    flags = ["--gold", "--data", str(questions), "--tables", "patients"]
    assert evaluate.main(["sql", *flags, "--out", str(tmp_path / "out")]) == 0
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
