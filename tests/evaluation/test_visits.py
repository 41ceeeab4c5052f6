"""A visitor is answered at every address, and an own question is played to an end or refused."""

import asyncio
import json
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

from common.connections import Server
from episodes import registry
from episodes.episode import Episode
from episodes.outcomes import STOP_REASONS
from episodes.play_and_score import tasks_of
from episodes.policy import Endpoint
from episodes.text_loop import play_with_words
from evaluation import serve
from evaluation.visits import Watched, in_rows
from tests.corpora import write_lines
from tests.digits_agent.agent import AGENT as DIGITS
from tests.episodes.scripted import ScriptedPolicy, asks, says
from tests.evaluation.visiting import SETTINGS

REPLIES = {
    "words": says("yes"),
    "nothing": says(""),
    "a call": asks("SELECT 1"),
    "a question": says("<answer>问题：哪里疼？</answer>"),
    "an order": says("Current diagnosis: x\nFurther examination needed: CBC.\nReason: y"),
    "a program": says('{"action": "validate_code", "params": {"code": "print(1)"}}'),
}


async def answer(said: str) -> str:
    assert said
    return "right lower side"


@pytest.mark.system
@pytest.mark.parametrize("name", registry.names())
def test_an_own_question_is_played_to_an_end(name, has_packages_of):
    has_packages_of(name)
    agent = registry.get(name)
    if agent is DIGITS:
        pytest.skip("it takes none; see below")
    with closing(agent.open(SETTINGS, {})) as environment:
        for reply in REPLIES.values():
            policy = ScriptedPolicy(reply, max_turns=3)
            episode = asyncio.run(environment.asked("Which one?", answer, policy))
            assert episode.stop_reason in STOP_REASONS
            assert "Which one?" in policy.asked[0][-1]["content"]
            assert policy.turns <= 3


def test_replies_that_are_played_again_count_against_the_budget():
    """Else a visitor who sends a long conversation has an episode longer than any other."""
    policy = Watched(Endpoint("http://127.0.0.1:9/v1", "m"), 2, print, ["one", "two", "three"])

    async def respond(reply: str, episode: Episode) -> str:
        return "go on"

    episode = asyncio.run(play_with_words(policy, [{"role": "user", "content": "?"}], respond))
    said = [message["content"] for message in episode.messages if message["role"] == "assistant"]
    assert (episode.stop_reason, policy.turns, said) == ("max_turns", 2, ["one", "two"])


@pytest.mark.parametrize("agent", [registry.get("code"), DIGITS], ids=["code", "digits"])
def test_cases_with_numbers_for_ids_are_found_by_them(agent, tmp_path):
    """Evaluations of them were called those of another version, and other programs found none."""
    row = agent.rows(agent.splits["test"])[0]
    file = write_lines(tmp_path / "own.jsonl", [{**row, "id": 7}])
    tasks = serve.checked_tasks(agent, file, SETTINGS, {})
    assert {name: task.id for name, task in tasks.items()} == {"7": "7"}
    assert [task.id for task in tasks_of(agent, [{**row, "id": 8}], SETTINGS)] == ["8"]


@pytest.mark.parametrize("number", [1234567.5, 200 / 3, 5.0, 12])
def test_a_number_of_a_row_is_found_in_the_answer(number):
    rows = [{"role": "tool", "content": json.dumps({"rows": [[number]]})}]
    for form in ("", "g", ".15g"):
        assert in_rows(f"共{number:{form}}元", "多少钱？", rows) is True
    assert in_rows("共3元", "多少钱？", rows) is False


@pytest.mark.parametrize("address", ["127.0.0.2", "::1", "127.0.0.1"])
def test_it_answers_at_every_address_that_it_prints(address, llm, monkeypatch, capsys):
    seen = list[int]()

    def ask(server: Server, sockets: Any) -> None:
        url = capsys.readouterr().out.split()[0]
        with TestClient(server.config.app, base_url=url) as visitor:
            for path in ("health", "nothing", "v1/chat/completions"):
                seen.append(visitor.get(path).status_code)
            told = visitor.get("nothing").json()["error"]
        assert (seen, told["message"]) == ([200, 404, 405], "Not Found")

    monkeypatch.setattr(Server, "run", ask)
    line = ["sql", "m", "--base-url", llm.base_url, "--port", "0", "--host", address]
    serve.serve(*serve.parse_arguments([*line, "--max-tokens", "8"], SETTINGS), SETTINGS)
    assert seen
