"""Comparing two evaluations: paired differences, what changed, and what must be said with them."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from episodes import registry
from evaluation import compare
from evaluation.metrics import FEW
from evaluation.report import __main__ as report
from evaluation.tables import show_table, table
from tests.corpora import cases_of, write_lines
from tests.episodes.guessing_agent import GuessingAgent
from tests.evaluation.evaluations import evaluation, record
from tests.messages import missing


def compared(a: Path, b: Path, capsys: Any, *options: str) -> dict[str, Any]:
    assert compare.main([str(a), str(b), "--json", *options]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_the_difference_is_paired(tmp_path, capsys):
    """Every question gains 0.1: whatever their own spread, the difference has none."""
    chance = random.Random(0)
    scores = {str(number): chance.uniform(0, 0.9) for number in range(40)}
    a = evaluation(tmp_path / "a", [record(name, score) for name, score in scores.items()])
    b = evaluation(tmp_path / "b", [record(name, score + 0.1) for name, score in scores.items()])
    overall = compared(a, b, capsys)["overall"]
    assert overall["difference"] == pytest.approx(0.1)
    assert overall["ci95"] == pytest.approx([0.1, 0.1])
    assert (overall["n"], overall["better"], overall["worse"]) == (40, 40, 0)


def test_samples_are_averaged_and_changes_listed_largest_first(tmp_path, capsys):
    before, after = (("x", 0.0), ("x", 1.0), ("y", 1.0), ("z", 0.5)), (1.0, 1.0, 0.2, 1.0)
    a = evaluation(tmp_path / "a", [record(name, score) for name, score in before])
    b = evaluation(tmp_path / "b", [record(*one) for one in zip("xxyz", after, strict=True)])
    result = compared(a, b, capsys)
    assert result["overall"]["difference"] == pytest.approx((0.5 - 0.8 + 0.5) / 3)
    assert [change["id"] for change in result["better"]] == ["z", "x"]
    assert [change["id"] for change in result["worse"]] == ["y"]
    assert result["worse"][0]["a"]["score"] == 1.0


def test_the_report_shows_what_changed_most_and_what_differs(tmp_path, capsys, monkeypatch):
    scores = {f"q{number:02}": number / 40 for number in range(1, 22)}
    before = [*(record(name, 0.0) for name in scores), record("bad", 0.5), record("once", None)]
    a = evaluation(tmp_path / "a", before)
    changed = record("bad", 0.25, answer="a | b", stop_reason="length")
    after = [*(record(name, score) for name, score in scores.items()), changed]
    b = evaluation(tmp_path / "b", after, model="n", judge="llm", max_turns=5)
    assert compare.main([str(a), str(b)]) == 0
    text = capsys.readouterr().out
    named = ("is the score", f"m ({a})", f"n ({b})", "judge was reference in A and llm in B")
    assert not missing(text, *named)
    assert text.count("CONDITIONS DIFFER") == 2, "what is the same in both is no condition"
    assert "NOT COMPLETE: 1 episodes of A" in text
    with monkeypatch.context() as chinese:
        chinese.setenv("LC_ALL", "zh_CN.UTF-8")
        assert compare.main([str(a), str(b)]) == 0
        assert not missing(capsys.readouterr().out, "条件不同：judge", "reference", "llm")
    result = compared(a, b, capsys)
    assert (result["a"]["unscored"], result["b"]["unscored"]) == (1, 0)
    low, high = (f"{100 * bound:+.1f}" for bound in result["overall"]["ci95"])
    assert f"| overall | 22 | 2.3 | 27.4 | +25.1 | {low} to {high} | 21 | 1 |" in text
    assert not missing(
        text, "questions better, at most 20", "questions worse, at most 20", "| q02 |", "a \\| b"
    )
    assert "q01 |" not in text, "it changed least"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ([0.1] * 20, "better"),
        ([-0.1] * 20, "worse"),
        ([0.0] * 20, "unclear"),
        ([0.5, -0.6] * 10, "unclear"),  # lower on average, as it may be by chance
        ([0.5, -0.1] * 10, "better"),
        ([1.0] * 4 + [0.0] * 96, "unclear"),  # four heads in a row are no news: p = 0.125
        ([1.0] * 9, "too few"),
    ],
)
def test_chance_is_not_called_a_change(tmp_path, capsys, changes, verdict):
    """A checkpoint would be kept or thrown away for noise."""
    after = {str(number): 0.5 + change / 2 for number, change in enumerate(changes)}
    before = {str(number): 0.5 - change / 2 for number, change in enumerate(changes)}
    a = evaluation(tmp_path / "a", [record(name, score) for name, score in before.items()])
    b = evaluation(tmp_path / "b", [record(name, score) for name, score in after.items()])
    assert compared(a, b, capsys)["overall"]["verdict"] == verdict
    assert compare.main([str(a), str(b)]) == 0
    said = compare.VERDICTS[verdict].format(few=FEW)
    assert f"B against A: {said}" in capsys.readouterr().out


def test_an_answer_sends_nothing_to_the_terminal(capsys, monkeypatch):
    rows = [["question", "answer"], ["q", "x\x1b]0;owned\x07\x1b[2J"]]
    monkeypatch.setenv("COLUMNS", "80")
    show_table(rows)
    shown = "\n".join([capsys.readouterr().out, *table(rows)])
    assert shown.count("owned") == 2
    assert "\x1b" not in shown


def test_other_data_compares_what_both_have_and_says_so(tmp_path, capsys):
    a = evaluation(tmp_path / "a", [record("x", 0.0), record("y", 0.0), record("w", None)])
    other = {"file": "e.parquet", "sha256": "1" * 64, "questions": 2}
    changed = record("y", 1.0, question="another question")
    b = evaluation(tmp_path / "b", [record("x", 1.0), changed], data=other)
    result = compared(a, b, capsys)
    assert (result["overall"]["n"], result["left_out"], result["same_data"]) == (1, 1, False)
    assert compare.main([str(a), str(b)]) == 0
    assert "THE DATA FILES DIFFER" in capsys.readouterr().out


def test_what_cannot_be_compared_is_told_in_one_line(tmp_path, capsys):
    a = evaluation(tmp_path / "a", [record("x", 0.0)])
    b = evaluation(tmp_path / "b", [record("y", 0.0)])
    c = evaluation(tmp_path / "c", [record("x", 0.0)])
    change(c, agent="gone")
    d = evaluation(tmp_path / "d", [record("x", 0.0)])
    write_lines(d / "episodes.jsonl", [{"id": "x", "score": 0.0}])
    e = evaluation(tmp_path / "e", [record("x", 0.0)])
    (e / "scores.json").write_text('{"agent": "sql", "overall": {}, "data": {}}')
    others = ((b, "no question"), (tmp_path, str(tmp_path)), (c, "'gone'"), (d, "another version"))
    for other, named in (*others, (e, "model")):
        refused(a, other, named, capsys)


def refused(a: Path, b: Path, named: str, capsys: Any) -> None:
    for sides in ((a, b), (b, a)):
        assert compare.main([*map(str, sides)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert named in line


@pytest.mark.parametrize("edited", cases_of(__file__, "edited_scores"))
def test_scores_edited_by_hand_are_refused_by_their_file(edited, tmp_path, capsys):
    a = evaluation(tmp_path / "a", [record("x", 0.0)])
    b = evaluation(tmp_path / "b", [record("x", 0.0)])
    change(b, **edited)
    refused(a, b, str(b / "scores.json"), capsys)
    assert report.main([str(a), str(b), "--out", str(tmp_path / "o.html")]) == 0


@pytest.mark.parametrize(
    "edited", [{"task_type": 1}, {"wording": ["seen"]}, {"score": float("nan")}, {"answer": ["x"]}]
)
def test_an_episode_edited_by_hand_is_refused_by_its_file(edited, tmp_path, capsys):
    a = evaluation(tmp_path / "a", [record("x", 0.0), record("y", 1.0)])
    b = evaluation(tmp_path / "b", [record("x", 1.0), record("y", 1.0)])
    write_lines(b / "episodes.jsonl", [record("x", 1.0), record("y", 1.0) | edited])
    refused(a, b, str(b / "episodes.jsonl"), capsys)


def test_two_agents_are_not_compared_and_the_headline_is_the_agents(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(registry, "_registered", {"guessing": GuessingAgent()})
    a, b = tmp_path / "a", tmp_path / "b"
    for folder, x, y in ((a, 0.75, None), (b, 0.5, 0.5)):
        played = [record("x", 0.0, facts={"silent": x}), record("y", 1.0, facts={"silent": y})]
        evaluation(folder, played)
    change(b, agent="guessing")
    assert compare.main([str(a), str(b)]) == 2
    assert "sql agent" in capsys.readouterr().err
    change(a, agent="guessing")
    result = compared(a, b, capsys)
    overall = result["overall"]
    assert (result["headline"], overall["n"], overall["difference"]) == ("silent", 1, -0.25)


def change(folder: Path, **values: Any) -> None:
    path = folder / "scores.json"
    scores = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(scores | values), encoding="utf-8")


def test_a_chinese_reader_gets_chinese_tables(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    tasks = [record(f"q{n}", n > 3, task_type=f"kind {n % 2}") for n in range(12)]
    tasks[0]["question"] = "score"  # may be a word of ours
    a = evaluation(tmp_path / "a", tasks)
    b = evaluation(tmp_path / "b", [task | {"score": 1.0} for task in tasks])
    assert compare.main([str(a), str(b)]) == 0
    said = capsys.readouterr().out
    assert not missing(said, "# B 对比 A", "总体", "变好的题目", "95 % 区间", " 至 +", "太少")
    assert "| score | 0.0 |" in said
    assert not {"tasks", "overall", "too few"} & {*re.findall(r"[a-z ]+", said)}
    few = evaluation(tmp_path / "few", [*tasks[:5], record("lost", None)])
    assert compare.main([str(few), str(b)]) == 0
    assert "too few" not in capsys.readouterr().out
    assert "评判出错 1" in (few / "table.md").read_text(encoding="utf-8")
