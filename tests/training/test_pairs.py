"""Pairs of episodes and of files: which there are, which are left out and why."""

from argparse import Namespace
from typing import Any

import pytest

from code_agent.medagentgym.histories import History, dpo_rows
from common.command import UsageError
from episodes import registry
from tests.corpora import cases_of, write_lines
from tests.messages import missing
from training.pairs.pair import (
    Pair,
    pairs_asked,
    pairs_of_episodes,
    pairs_of_file,
    problem_of,
    prompt_of,
    replies_of,
)

AGENT = registry.get("code")
PROMPT = [{"role": "system", "content": "Solve."}, {"role": "user", "content": "How many?"}]


def said(*texts: str) -> list[dict[str, str]]:
    """Return replies with what a partner said between them."""
    messages = []
    for text in texts:
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "Go on."}]
    return messages[:-1]


def episode(score: float | None, *texts: str, **more: Any) -> dict[str, Any]:
    line = {"id": "t1", "question": "How many?", "answer": texts[-1] if texts else None}
    return {**line, "score": score, "transcript": [*PROMPT, *said(*texts)], **more}


def pair(chosen: str, rejected: str, task: str = "t1") -> Pair:
    return Pair(task, [*PROMPT, *said(chosen)], [*PROMPT, *said(rejected)])


def written(pairs: list[Pair]) -> list[list[list[str]]]:
    """Return the replies of both sides of each pair."""
    return [[replies_of(one.chosen), replies_of(one.rejected)] for one in pairs]


def test_the_best_stand_against_the_worst(tmp_path):
    lines = [episode(score, f"{score}") for score in (0.5, 1.0, 0.0, 0.45)]
    other = [episode(1.0, "a", id="t2"), episode(0.95, "b", id="t2")]
    path = write_lines(tmp_path / "episodes.jsonl", [*lines, *other])
    pairs, left_out = pairs_of_episodes([path], AGENT, margin=0.2)
    assert written(pairs) == [[["1.0"], ["0.0"]]]
    assert left_out == {"tasks without two episodes that differ by --margin": 1}
    closer, _ = pairs_of_episodes([tmp_path], AGENT, margin=0.04)
    assert [one.task for one in closer] == ["t1", "t1", "t2"]
    assert written(closer) == [[["1.0"], ["0.0"]], [["0.5"], ["0.45"]], [["a"], ["b"]]]
    halves, _ = pairs_of_episodes([path], AGENT, margin=1.0)
    assert len(halves) == 1, "a difference of the margin itself is enough"
    tenths = write_lines(tmp_path / "kept.jsonl", [episode(0.7, "c"), episode(0.5, "d")])
    assert len(pairs_of_episodes([tenths], AGENT, margin=0.2)[0]) == 1, "as written, not as a float"


def test_unscored_silent_and_validation_episodes_are_counted_and_left_out(tmp_path):
    silent = {**episode(1.0, "x"), "transcript": None}
    lines = [episode(1.0, "a"), episode(0.0, "b"), episode(None, "c"), episode(0.0), silent]
    lines.append(episode(0.0, "of a run's validation", mode="val"))
    for odd in (5, {"a": 1}, [*PROMPT, "text", *said("a")]):
        lines.append({**silent, "transcript": odd})
    path = write_lines(tmp_path / "kept.jsonl", lines)
    pairs, left_out = pairs_of_episodes([path], AGENT, margin=0.2)
    assert written(pairs) == [[["a"], ["b"]]]
    assert left_out.pop("validation episodes") == 1
    assert left_out == {"episodes without a score": 1, "episodes without messages": 5}


def test_a_pair_of_a_rollout_is_read(tmp_path):
    """With the id of its task, by which the tasks of the test file are known."""
    right = History(3, 0, [*PROMPT, *said("a", "b")], {"result": "success", "id": "own/3"})
    silent = History(3, 1, PROMPT, {"result": "failure", "id": "own/3"})
    wrong = History(3, 2, [*PROMPT, *said("c")], {"result": "failure", "id": "own/3"})
    path = write_lines(tmp_path / "pairs.jsonl", dpo_rows([right, silent, wrong]))
    (found,) = pairs_of_file(path, AGENT)
    assert found.task == "own/3"
    assert prompt_of(found.chosen) == prompt_of(found.rejected) == PROMPT
    assert written([found]) == [[["a", "b"], ["c"]]]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "How many?", "chosen": "five", "rejected": "six"},
        {"chosen": [*PROMPT[1:], *said("five")], "rejected": [*PROMPT[1:], *said("six")]},
        {"prompt": "How many?", "chosen": [*PROMPT[1:], *said("five")], "rejected": "six"},
    ],
)
def test_public_forms_of_a_pair(tmp_path, row):
    (found,) = pairs_of_file(write_lines(tmp_path / "pairs.jsonl", [row]), AGENT)
    assert found.chosen == [*PROMPT[1:], *said("five")]
    assert found.rejected == [*PROMPT[1:], *said("six")]


@pytest.mark.parametrize(
    ("row", "named"), [*cases_of(__file__, "no_pairs"), ({"messages": PROMPT}, "chosen")]
)
def test_a_file_of_another_form(tmp_path, row, named):
    with pytest.raises(UsageError) as refused:
        pairs_of_file(write_lines(tmp_path / "pairs.jsonl", [row]), AGENT)
    assert not missing(str(refused.value), "line 1", named)


def test_places_without_episodes(tmp_path):
    with pytest.raises(UsageError, match=r"episodes\.jsonl"):
        pairs_of_episodes([tmp_path], AGENT, margin=0.2)
    write_lines(tmp_path / "episodes.jsonl", [episode(1.0, "a", tools="calculator")])
    with pytest.raises(UsageError, match=r"line 1.*tools"):
        pairs_of_episodes([tmp_path], AGENT, margin=0.2)
    (tmp_path / "scores.json").write_text('{"agent": "sql"}')
    with pytest.raises(UsageError, match="sql"):
        pairs_of_episodes([tmp_path], AGENT, margin=0.2)


def calling(arguments: str) -> list[dict[str, Any]]:
    """Return an episode whose one reply is a call of a tool."""
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": arguments}}
    return [*PROMPT, {"role": "assistant", "content": "", "tool_calls": [call]}]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (pair("five", "six"), None),
        (Pair("t1", calling('{"code": "five"}'), calling("{}")), None),
        (pair("five", "six", task="tested"), "test file"),
        (Pair("t1", [*PROMPT, *said("five")], [PROMPT[1], *said("six")]), "two different"),
        (pair("five", "  "), "empty"),
        (pair("five", " five"), "equal"),
        (pair("five", "five of them"), "length alone"),
    ],
)
def test_why_a_pair_is_left_out(found, reason):
    problem = problem_of(found, {"tested"})
    assert problem == reason if reason is None else reason in str(problem)


def test_what_a_command_learns_from_is_checked(tmp_path):
    """Pairs of the test file would be learned, and then be measured on."""
    row = {"prompt": "?", "chosen": "better", "rejected": "worse"}
    rows = [{**row, "task": "own"}, row]
    for split in ("val", "test"):
        rows.append({**row, "task": AGENT.rows(AGENT.splits[split])[0]["id"]})
    path = write_lines(tmp_path / "pairs.jsonl", rows)
    kept, left_out = pairs_asked(AGENT, Namespace(pairs=path))
    assert [one.task for one in kept] == ["own"]
    assert left_out == {"task of the validation or test file": 2, "there already": 1}
