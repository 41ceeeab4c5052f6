"""Kept episodes are scored again without their model: the same where nothing changed.

The model is a scripted one over HTTP, and it is gone when the episodes are scored again.
"""

import json

import pytest

from episodes import registry
from evaluation import evaluate, rescore
from tests.corpora import write_lines
from tests.episodes.scripted import calls, says

SQL = "SELECT overview FROM disease WHERE disease_name = '肺炎'"
REPLIES = {
    "sql": [calls(SQL), says("数据库中没有找到相关内容。"), says("<tool_call>")],
    "consultation": [
        says("<answer>问题：您哪里不舒服？</answer>"),
        says("no frame"),
        says("<answer>诊断：肺炎\n建议：多休息</answer>"),
    ],
    "diagnosis": [
        says("Current diagnosis: x\nFurther examination needed: CBC.\nReason: y"),
        says("nothing"),
        says(
            "The available information is sufficient to make a diagnosis.\n"
            "Final diagnosis: pneumonia\nReason: z"
        ),
    ],
}


@pytest.fixture
def evaluated(tmp_path, llm, request):
    """An evaluation of an agent whose model gives the replies in turn, until it is full."""
    llm.script(*REPLIES[request.param], {**says("cut"), "finish_reason": "length"})
    folder = tmp_path / "kept"
    who = ["--model", "m", "--base-url", llm.base_url, "--n", "12", "--concurrency", "1"]
    drawn = [] if request.param == "sql" else ["--max-turns", "2-4", "--seed", "3"]
    evaluate.main([request.param, *who, *drawn, "--out", str(folder)])
    return folder


@pytest.mark.parametrize("evaluated", REPLIES, indirect=True)
def test_what_did_not_change_is_equal_to_the_last_bit(evaluated):
    assert rescore.main([str(evaluated)]) == 0
    again = evaluated.with_name("kept-rescored")
    for name in ("episodes.jsonl", "scores.json"):
        assert (again / name).read_bytes() == (evaluated / name).read_bytes(), name
    reasons = json.loads((again / "scores.json").read_text())["overall"]["stop_reasons"]
    assert len(reasons) > 1


@pytest.mark.parametrize("evaluated", ["diagnosis"], indirect=True)
def test_a_reward_that_changed_changes_the_scores(evaluated, capsys):
    flags = ["--out", str(evaluated.with_name("other")), "--reward", "format=1"]
    assert rescore.main([str(evaluated), *flags]) == 0
    said = capsys.readouterr().out
    assert "| overall | 12 |" in said
    lines = (evaluated.with_name("other") / "episodes.jsonl").read_text().splitlines()
    assert {name for line in lines for name in json.loads(line)["terms"]} == {"format"}


def test_single_turns_are_scored_again_by_the_policy_s_own_replies(tmp_path, llm):
    """The transcript is gold's but for its end: gold's orders were scored as the policy's."""
    llm.script(says("Current diagnosis: x\nFurther examination needed: hair analysis.\nReason: y"))
    folder = tmp_path / "kept"
    who = ["--model", "m", "--base-url", llm.base_url, "--n", "4", "--single-turn"]
    assert evaluate.main(["diagnosis", *who, "--out", str(folder)]) == 0
    assert rescore.main([str(folder), "--single-turn"]) == 0
    again = folder.with_name("kept-rescored")
    assert (again / "episodes.jsonl").read_bytes() == (folder / "episodes.jsonl").read_bytes()
    lines = (folder / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["facts"]["next_examination_hit"] for line in lines} == {0.0}


@pytest.mark.parametrize("evaluated", ["sql"], indirect=True)
def test_what_the_machine_broke_stays_unscored(evaluated):
    """Its transcript ends where the machine did: played again, the policy would be blamed for it."""
    path = evaluated / "episodes.jsonl"
    first, *others = [json.loads(line) for line in path.read_text().splitlines()]
    broken = {**first, "score": None, "unscored": "endpoint_unreachable", "detail": "gone"}
    write_lines(path, [broken, *others])
    assert rescore.main([str(evaluated)]) == 1
    again = evaluated.with_name("kept-rescored")
    assert json.loads((again / "episodes.jsonl").read_text().splitlines()[0]) == broken
    scores = json.loads((again / "scores.json").read_text())
    assert scores["overall"]["unscored"] == {"endpoint_unreachable": 1}


@pytest.mark.parametrize("evaluated", ["sql"], indirect=True)
def test_bad_input_is_named(evaluated, tmp_path, capsys):
    gold = str(tmp_path / "gold")
    assert evaluate.main(["sql", "--gold", "--n", "2", "--out", gold]) == 0
    for words, named in (
        ([str(evaluated), "--data", str(registry.get("sql").splits["val"])], "test.parquet"),
        ([str(evaluated), "--out", str(evaluated)], "--out"),
        ([str(tmp_path / "none")], str(tmp_path / "none")),
        ([gold], "no policy"),
    ):
        capsys.readouterr()
        assert rescore.main(words) == 2
        assert named in capsys.readouterr().err
