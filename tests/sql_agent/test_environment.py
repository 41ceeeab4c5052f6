"""The SQL agent's episodes through the real loop, tool, database and offline judge."""

import asyncio
import json
from typing import Any

import pytest

from episodes.episode import Episode, ServiceError
from episodes.outcomes import EpisodeError
from episodes.policy import ChatPolicy, Endpoint
from sql_agent.agent import AGENT
from sql_agent.environment import SqlEnvironment
from sql_agent.intake.question_files import COLUMNS
from sql_agent.prompts import PROMPT_VERSION
from sql_agent.settings import SqlSettings
from sql_agent.task import task_of
from tests.corpora import cases_of
from tests.episodes.scripted import asks, says
from tests.sql_agent.small_database import STORAGE
from tools.sql.database import DatabaseError, MachineTooSlow

SQL = "SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'"
ROW = dict.fromkeys(COLUMNS, "") | {
    "id": "q0",
    "question": "朵莎洛片怎么保存？",
    "answer": f"朵莎洛片的贮藏方法：{STORAGE}",
    "sql": SQL,
    "structured_gt": json.dumps({"columns": ["storage"], "rows": [[STORAGE]]}),
}
TASK = task_of(ROW)


def opened(url: str, evaluating: bool = False, **settings: Any) -> SqlEnvironment:
    found = AGENT.open(SqlSettings(_env_file=None, database_url=url, **settings), {}, evaluating)
    assert isinstance(found, SqlEnvironment)
    return found


def play(llm: Any, url: str, max_turns: int = 3, **settings: Any) -> Episode:
    policy = ChatPolicy(
        Endpoint(llm.base_url, "tiny", max_tokens=77, extra={"top_k": -1}), max_turns
    )
    return asyncio.run(opened(url, **settings).play(TASK, policy))


def test_an_evaluation_pays_by_the_factors_of_the_run_and_asks_the_judge_beside(database_url):
    environment = opened(database_url, evaluating=True, reward_terms="execution=1*format")
    assert environment.rubric.weights == {"execution": 1.0, "judge": 1.0}
    assert (
        environment.rubric.factors
        == opened(database_url, reward_terms="execution=1*format").rubric.factors
        == {"execution": ["format"]}
    )


def test_a_wrong_query_is_told_to_the_policy_and_the_requests_extend_each_other(llm, database_url):
    llm.script(asks("SELECT nothing FROM drugs_info"), asks(SQL), says("好"))
    episode = play(llm, database_url)
    assert [query.result.ok for query in episode.events] == [False, True]
    first, second, third = (request["messages"] for request in llm.requests)
    assert json.loads(second[-1]["content"])["status"] == "error"
    assert third[: len(second)] == second
    assert second[: len(first)] == first
    assert [request.get("tool_choice") for request in llm.requests] == [None, None, "none"]


def test_a_database_that_is_gone_raises_and_is_not_told_to_the_policy(llm, tmp_path):
    llm.script(asks(SQL), says("好"))
    with pytest.raises(EpisodeError) as caught:
        play(llm, f"sqlite:///{tmp_path}/gone.db")
    assert caught.value.cause == "database_error"
    assert len(llm.requests) == 1


def test_a_machine_that_is_too_slow_is_not_called_a_database_that_failed(database_url, monkeypatch):
    def slow(sql: str) -> None:
        raise MachineTooSlow("3 tries of a statement")

    environment = opened(database_url)
    monkeypatch.setattr(environment.tool, "run", slow)
    with pytest.raises(EpisodeError) as caught:
        asyncio.run(environment.gold(TASK))
    assert caught.value.cause == "machine_too_slow"


def test_the_description_has_what_scores_depend_on_and_no_secret():
    found = opened("postgresql://user:secret@host/db", teacher_model="m").description()
    assert found == {
        "prompt_version": PROMPT_VERSION,
        "database": "postgresql://user:***@host/db",
        "judge": "m",
        "terms": {"rule": 0.1, "judge": 1.0},
        "factors": {"judge": ["format"]},
    }


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
