"""The served agent over real HTTP: what requests get, who is refused, what a client that leaves
ends.

The model is a scripted endpoint; agent, tools and protocol are the real ones.
"""

import json
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, nullcontext, suppress
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import httpx
import openai
import orjson
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as fuzzing
from hypothesis import strategies as st

from common.access import json_of
from common.command import Failure
from common.connections import Server
from common.settings import ROOT
from episodes import registry
from episodes.outcomes import STOP_REASONS
from episodes.policy import Endpoint
from evaluation import serve
from evaluation.visits import ENDS as SENTENCES
from evaluation.visits import UNAVAILABLE
from tests.corpora import cases_of, write_lines
from tests.digits_agent.agent import AGENT as DIGITS
from tests.episodes.scripted import asks, says
from tests.evaluation.folders import training_run
from tests.evaluation.visiting import SETTINGS, served
from tests.messages import missing
from tests.sql_agent.small_database import STORAGE

QUESTION, QUERY = "朵莎洛片怎么保存？", "SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'"
ANSWER = f"贮藏方法：{STORAGE}"
ASKS, ENDS = "<answer>问题：哪里疼？</answer>", "<answer>诊断：急性阑尾炎\n建议：去急诊</answer>"


def post(address: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{address}/v1/chat/completions", json=body, timeout=60, trust_env=False)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def client(address: str, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)


def test_the_whole_agent_answers_a_question_of_ones_own(sql, llm):
    """What was asked and answered before in the same chat is neither."""
    llm.script(asks(QUERY), says(ANSWER))
    before = [user("earlier"), {"role": "assistant", "content": "an earlier answer"}]
    answer = client(sql).chat.completions.create(
        model="sql",
        messages=[*before, user(QUESTION)],  # type: ignore[list-item]
    )
    assert answer.choices[0].message.content == ANSWER
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage
    assert answer.usage.total_tokens == 4
    asked = [one["content"] for one in llm.requests[0]["messages"] if one["role"] == "user"]
    assert asked == [QUESTION]
    agent = answer.model_extra["agent"]  # type: ignore[index]
    called, returned, said = agent["steps"]
    assert json.loads(called["tool_calls"][0]["function"]["arguments"]) == {"sql": QUERY}
    assert json.loads(returned["content"])["rows"] == [[STORAGE]]
    assert (said["content"], agent["reason"]) == (ANSWER, "answered")
    assert (agent["turns"], agent["reference"]) == (2, None)


def test_a_stream_has_every_step_then_the_answer_and_what_it_cost(sql, llm):
    llm.script(asks(QUERY), says(ANSWER))
    asked: Any = {"model": "sql", "messages": [user(QUESTION)], "stream": True}
    chunks = list(client(sql).chat.completions.create(**asked))
    steps = [chunk.model_extra["step"] for chunk in chunks[:3]]  # type: ignore[index]
    assert [step["role"] for step in steps] == ["assistant", "tool", "assistant"]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ANSWER
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].usage
    assert chunks[-1].usage.completion_tokens == 2


def test_an_end_without_an_answer_is_a_sentence_and_a_reason(sql, llm):
    """The protocol's own text says nothing to a person."""
    llm.script(says("<tool_call>"))
    found = post(sql, model="sql", messages=[user(QUESTION)]).json()
    agent = found["agent"]
    assert agent["reason"] == "bad_tool_call"
    assert agent["reply"] == "<tool_call>"
    assert agent["answer"] is None
    assert found["choices"][0]["message"]["content"] == SENTENCES["bad_tool_call"]["zh"]
    assert {"answered", "failed", *SENTENCES} == {*STOP_REASONS}


def test_an_answer_with_nothing_of_its_rows_is_marked(sql, llm):
    invented = "朵莎洛片要冷冻。"
    llm.script(asks(QUERY), says(ANSWER), asks(QUERY), says(invented), says(invented))
    for known in (True, False, None):  # at last no row was read
        found = post(sql, model="sql", messages=[user(QUESTION)]).json()
        assert found["agent"]["in_rows"] is known


def test_a_run_is_asked_its_own_validation_questions(tmp_path):
    run = training_run(tmp_path / "run")
    (run / "data").mkdir()
    (run / "data" / "val.jsonl").touch()
    checkpoint = run / "checkpoints" / "global_step_3"
    checkpoint.mkdir(parents=True)
    sql_agent = registry.get("sql")
    for model in (run, checkpoint):
        assert serve.cases_of(sql_agent, str(model)) == run / "data" / "val.jsonl"
    for agent, model in ((sql_agent, "hub/name"), (DIGITS, str(run))):
        assert serve.cases_of(agent, model) == agent.splits["test"]


def test_a_run_does_not_answer_from_another_database(tmp_path, capsys):
    """In a new terminal DATABASE_URL is gone, and a hospital's run would answer from the bundled one."""
    made_from = f"sqlite:///{tmp_path}/hospital.db"
    row = {"id": "q", "question": "宁心九号片怎么保存？", "database": made_from}
    row["sql"] = "SELECT storage FROM drugs_info WHERE med_name = '宁心九号片'"
    row["structured_gt"] = {"columns": ["storage"], "rows": [["密封"]]}
    run = training_run(tmp_path / "run")
    (run / "data").mkdir()
    write_lines(run / "data" / "val.jsonl", [row])
    line = ["sql", str(run), "--base-url", "http://127.0.0.1:9/v1", "--port", "0"]
    assert serve.main(line) == 2
    assert not missing(capsys.readouterr().err, made_from, "medical.db", "DATABASE_URL")


def test_no_cases_of_another_database_are_offered(database_url, capsys):
    agent = registry.get("sql")
    test_file = agent.splits["test"]
    settings = SETTINGS.model_copy(update={"database_url": database_url})
    assert serve.checked_tasks(agent, test_file, settings, {}) == {}
    assert not missing(capsys.readouterr().err, test_file.name, database_url)
    assert serve.checked_tasks(agent, test_file, SETTINGS, {})


def test_a_visit_ends_with_its_time(llm):
    """Else a model that hangs keeps the places of others."""
    llm.script(says("late"))
    llm.delay = 5.0
    with served("sql", llm.base_url, episode_timeout=0.2) as (address, _):
        found = post(address, model="sql", messages=[user(QUESTION)])
    assert (found.status_code, found.json()["error"]["code"]) == (502, "timeout")


def test_a_case_is_played_with_the_agents_own_partner_and_its_reference_is_told(llm):
    llm.script(says(ASKS), says(ENDS))
    with served("consultation", llm.base_url) as (address, host):
        case = next(iter(host.tasks))
        found = post(address, model="consultation", case=case).json()
        reference = host.tasks[case].reference
        assert (found["agent"]["case"], found["agent"]["reference"]) == (case, reference)
        roles = [step["role"] for step in found["agent"]["steps"]]
        assert roles == ["assistant", "user", "assistant"]
        assert found["choices"][0]["message"]["content"] == "诊断：急性阑尾炎\n建议：去急诊"
        talk = [user("x"), {"role": "assistant", "content": ENDS}]  # is not part of a case
        again = post(address, model="consultation", case=case, messages=talk).json()
        assert again["agent"]["completion_tokens"] == 1
        assert post(address, model="consultation", case=case, temperature=0.25).status_code == 200
        assert llm.requests[-1]["temperature"] == 0.25
        assert post(address, model="consultation", case="nobody").status_code == 400


def test_the_visitor_is_the_patient_over_several_requests(llm):
    llm.script(says("哪里疼"), says(ASKS), says(ENDS))
    with served("consultation", llm.base_url) as (address, _):
        first = post(address, model="consultation", messages=[user("我肚子疼。")]).json()
        assert first["agent"]["reason"] == "waits"
        steps = [step["content"] for step in first["agent"]["steps"]]
        assert steps[0] == "哪里疼"
        assert steps[2] == ASKS == first["choices"][0]["message"]["content"]
        said = [{"role": "assistant", "content": text} for text in (steps[0], steps[2])]
        talk = [user("我肚子疼。"), *said, user("右下腹。")]
        last = post(address, model="consultation", messages=talk).json()
        assert [step["content"] for step in last["agent"]["steps"]] == [ENDS]
        assert (last["agent"]["turns"], last["agent"]["reason"]) == (3, "answered")
        assert last["usage"]["completion_tokens"] == 1  # what was said before costs nothing again
        assert last["agent"]["answer"] == "诊断：急性阑尾炎\n建议：去急诊"
    asked = llm.requests[-1]["messages"]
    assert [one["content"] for one in asked if one["role"] == "assistant"] == ["哪里疼", ASKS]
    assert "右下腹。" in asked[-1]["content"]


@pytest.mark.parametrize(
    ("body", "status"),
    [*cases_of(__file__, "unanswerable_requests"), ({"messages": [user("x" * 600_000)]}, 413)],
)
def test_what_cannot_be_answered_is_said_in_one_line(sql, llm, body, status):
    reply = post(sql, **body)
    assert reply.status_code == status
    assert "\n" not in reply.json()["error"]["message"]
    assert len(reply.text) < 400
    assert llm.requests == []


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ('{"messages": [{"role": "user", "content": 5}]}', ("messages.0.content", "5", "32000")),
        (json.dumps({"messages": [user("药" * 32_001)]}), ("messages.0.content", "32001", "32000")),
        ('{"n": %s}' % ("1" * 100), ("n: got 111", "(100 characters)")),
        (json.dumps({"case": [[["x" * 30] * 6] * 6] * 6}), ("case: got [[['xx", "(6 entries)")),
        ('{"药": ' + "x" * 100, ('body: got \'{"药": xx', "(106 characters)")),
    ],
)
def test_a_wrong_field_is_told_with_what_was_seen_and_expected(sql, body, named):
    kind = {"content-type": "application/json"}
    url = f"{sql}/v1/chat/completions"
    reply = httpx.post(url, content=body.encode(), headers=kind, trust_env=False)
    message = reply.json()["error"]["message"]
    assert reply.status_code == 400
    assert len(message) < 300
    assert not missing(message, *named)
    assert not [word for word in ("constrained", "Input should", "validation") if word in message]


def test_null_is_the_default_and_a_greeting_no_reply(llm):
    llm.script(says(ASKS))
    greeting = {"role": "assistant", "content": "您好，哪里不舒服？"}
    with served("consultation", llm.base_url) as (address, _):
        talk = [greeting, user("我肚子疼。")]
        found = post(address, messages=talk, stream=None, n=None, temperature=None).json()
    assert (found["agent"]["turns"], found["agent"]["reason"]) == (1, "waits")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("error", [ValueError, TimeoutError, SystemExit])
def test_an_agents_own_failure_is_an_error_without_its_words(llm, monkeypatch, stream, error):
    with served("sql", llm.base_url) as (address, host):
        monkeypatch.setattr(host.environment, "asked", AsyncMock(side_effect=error("secret")))
        text = post(address, messages=[user(QUESTION)], stream=stream).text
    assert UNAVAILABLE in text
    assert "secret" not in text


def test_two_messages_of_the_visitor_in_a_row_are_one(llm):
    """Else the agent would ask between them, and take the second for the answer."""
    llm.script(says(ASKS))
    with served("consultation", llm.base_url) as (address, _):
        found = post(address, messages=[user("我肚子疼。"), user("右下腹。")]).json()
    assert (found["agent"]["turns"], found["agent"]["reason"]) == (1, "waits")
    [request] = llm.requests
    assert not missing(request["messages"][-1]["content"], "我肚子疼。", "右下腹。")


def test_chinese_is_sent_as_itself_and_half_a_pair_as_a_question_mark(sql, llm):
    llm.script(says(f"{ANSWER}\ud800"))
    reply = post(sql, messages=[user(QUESTION)])
    assert ANSWER in reply.content.decode()
    assert reply.json()["choices"][0]["message"]["content"].startswith(ANSWER)
    assert "没有" in post(sql, model="没有").content.decode()
    assert orjson.loads(json_of({"a": "\ud800药"})) == {"a": "?药"}, "strict readers take it"


@fuzzing(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(st.none() | st.text(max_size=8), st.lists).map(json.dumps),
    )
)
def test_malformed_bodies_are_refused_and_nothing_else_happens(sql, llm, body):
    head = {"Content-Type": "application/json"}
    reply = httpx.post(f"{sql}/v1/chat/completions", content=body, headers=head, trust_env=False)
    assert reply.status_code == 400
    assert llm.requests == []


def test_pages_of_other_sites_cannot_ask(sql, llm):
    body = json.dumps({"model": "sql", "messages": [user("x")]})
    plain = {"Content-Type": "text/plain"}
    asked = httpx.post(f"{sql}/v1/chat/completions", content=body, headers=plain, trust_env=False)
    assert asked.status_code == 415
    named = httpx.get(f"{sql}/agent", headers={"Host": "evil.example"}, trust_env=False)
    assert named.status_code == 400
    assert llm.requests == []


def test_columns_have_the_names_of_the_very_database(llm, tmp_path):
    path = tmp_path / "own.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE lab (\nmed_name TEXT, -- 检验项目\nstatus TEXT)")
    settings: dict[str, Any] = {"database_url": f"sqlite:///{path}", "database_tables": "lab"}
    with served("sql", llm.base_url, **settings) as (address, _):
        told = httpx.get(f"{address}/agent", trust_env=False).json()
    assert told["names"] == {"med_name": "检验项目"}


def test_without_the_token_nothing_but_the_page_is_had(llm):
    with served(DIGITS, llm.base_url, token="s3cret") as (address, _):
        for path in ("v1/models", "agent"):
            assert httpx.get(f"{address}/{path}", trust_env=False).status_code == 401
            wrong = {"Authorization": "Bearer s3creT\xe9".encode("latin-1")}
            assert httpx.get(f"{address}/{path}", headers=wrong, trust_env=False).status_code == 401
        assert post(address, model="digits", case="x").status_code == 401
        assert [model.id for model in client(address, "s3cret").models.list()] == ["digits"]
        assert httpx.get(address, trust_env=False).status_code == 200
    assert llm.requests == []


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_its_episode(llm, stream):
    """With one place, the next visitor is served only once the first episode has ended."""
    llm.script(says(ASKS), says(ENDS))
    with served("consultation", llm.base_url, at_once=1) as (address, host):
        llm.delay = 120.0  # longer than the next visitor would wait
        body = {"model": "consultation", "case": next(iter(host.tasks)), "stream": stream}
        url = f"{address}/v1/chat/completions"
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url, json=body, timeout=0.5, trust_env=False).read()
        llm.delay = 0.0
        assert post(address, **body).status_code == 200
        assert not host.places.locked()


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


@pytest.mark.system
def test_the_command_serves_until_it_is_interrupted(llm):
    """With 256 files, and while 300 connections send no whole request."""
    llm.script(says("没有"))
    command = [sys.executable, "-m", "evaluation.serve", "sql", "m", "--port", "0"]
    command += ["--base-url", llm.base_url]
    how: Any = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    how |= {"cwd": ROOT, "env": {**os.environ, "AGL_TOKEN": "s3cret"}, "text": True}
    process = subprocess.Popen(command, preexec_fn=few_files, **how)
    held = []
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split("/ is the sql agent")[0]
        for _ in range(300):
            held.append(socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1]))))
            with suppress(OSError):  # it may have been dropped already
                held[-1].sendall(b"GET / HTTP/1.1\r\nhost: x\r\n")
        assert post(address, model="sql", messages=[user(QUESTION)]).status_code == 401
        asked: Any = {"model": "sql", "messages": [user(QUESTION)]}
        reply = client(address, "s3cret").chat.completions.create(**asked)
        assert reply.choices[0].message.content == "没有"
        headers = {"Host": "evil.example", "Authorization": "Bearer s3cret"}
        other = httpx.get(f"{address}/agent", headers=headers, trust_env=False)
        assert other.status_code == 400, "a page of that name could ask"
        process.terminate()
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        for one in held:
            one.close()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "serve: interrupted"  # a slow machine says its progress, too
    assert "Traceback" not in errors


def test_a_model_that_is_gone_is_told_in_words_for_visitors(llm):
    with served("sql", "http://127.0.0.1:9/v1") as (address, host):
        reply = post(address, model="sql", messages=[user(QUESTION)])
        assert reply.status_code == 502
        assert reply.json()["error"]["message"] == UNAVAILABLE
        assert "127.0.0.1" not in reply.text
        asked: Any = {"model": "sql", "messages": [user(QUESTION)], "stream": True}
        with pytest.raises(openai.APIError):
            list(client(address).chat.completions.create(**asked))
        assert httpx.get(f"{address}/health", trust_env=False).status_code == 200
        host.alive = False
        assert httpx.get(f"{address}/health", trust_env=False).status_code == 503


def test_an_agent_whose_own_model_is_gone_is_served_no_longer(monkeypatch):
    monkeypatch.setattr(serve, "SECONDS_BETWEEN", 0.01)
    gone = SimpleNamespace(names=dict), Endpoint("http://127.0.0.1:9/v1", "m")
    monkeypatch.setattr(serve, "opened", lambda *_: nullcontext(gone))
    monkeypatch.setattr(serve, "model_player", lambda *_: SimpleNamespace(kind="served"))
    end = time.monotonic() + 60

    def until_it_should_exit(server: Server, sockets: Any) -> None:
        while not server.should_exit and time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr(Server, "run", until_it_should_exit)
    line = ["sql", "m", "--port", "0", "--max-tokens", "8"]
    with pytest.raises(Failure, match="has ended"):
        serve.serve(*serve.parse_arguments(line, SETTINGS), SETTINGS)
