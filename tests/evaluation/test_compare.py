"""Comparing two evaluations: paired differences, what changed, and what must be said with them.

Keeps of docs/evaluation.md: differences are paired by question, and chance is not called a change.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from episodes import registry
from evaluation import compare
from tests.episodes.guessing_agent import GuessingAgent
from tests.evaluation.evaluations import evaluation, record


def compared(a: Path, b: Path, capsys: Any, *options: str) -> dict[str, Any]:
    assert compare.main([str(a), str(b), "--json", *options]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_the_difference_is_paired(tmp_path: Path, capsys: Any) -> None:
    """Every question gains 0.1: whatever their own spread, the difference has none."""
    chance = random.Random(0)
    scores = {str(number): chance.uniform(0, 0.9) for number in range(40)}
    a = evaluation(tmp_path / "a", [record(name, score) for name, score in scores.items()])
    b = evaluation(tmp_path / "b", [record(name, score + 0.1) for name, score in scores.items()])
    overall = compared(a, b, capsys)["overall"]
    assert overall["difference"] == pytest.approx(0.1)
    assert overall["ci95"] == pytest.approx([0.1, 0.1])
    assert (overall["n"], overall["better"], overall["worse"]) == (40, 40, 0)


def test_samples_are_averaged_and_changes_listed_largest_first(tmp_path: Path, capsys: Any) -> None:
    a = evaluation(
        tmp_path / "a", [record("x", 0.0), record("x", 1.0), record("y", 1.0), record("z", 0.5)]
    )
    b = evaluation(
        tmp_path / "b", [record("x", 1.0), record("x", 1.0), record("y", 0.2), record("z", 1.0)]
    )
    result = compared(a, b, capsys)
    assert result["overall"]["difference"] == pytest.approx((0.5 - 0.8 + 0.5) / 3)
    assert [change["id"] for change in result["better"]] == ["z", "x"]
    assert [change["id"] for change in result["worse"]] == ["y"]
    assert result["worse"][0]["a"]["score"] == 1.0


def test_a_question_that_did_not_change_is_neither_better_nor_worse(
    tmp_path: Path, capsys: Any
) -> None:
    """Sums of floats differ in their last digit: 0.1 + 0.2 against 0.3 is no change to report."""
    a = evaluation(tmp_path / "a", [record("x", 0.3), record("y", 0.5), record("z", 0.7)])
    b = evaluation(tmp_path / "b", [record("x", 0.1 + 0.2), record("y", 0.5), record("z", 0.1)])
    result = compared(a, b, capsys)
    assert ([change["id"] for change in result["worse"]], result["better"]) == (["z"], [])
    for part in (result["overall"], result["by_difficulty"]["easy"]):
        assert (part["better"], part["worse"]) == (0, 1)


def test_intervals_are_drawn_from_the_seed_that_is_asked_for(tmp_path: Path, capsys: Any) -> None:
    """The same two evaluations would be better today and no different tomorrow."""
    chance = random.Random(4)
    folders = [
        evaluation(tmp_path / name, [record(str(number), chance.random()) for number in range(30)])
        for name in "ab"
    ]
    plain, zero, zero_again, one = (
        compared(*folders, capsys, *options)
        for options in ((), ("--seed", "0"), ("--seed", "0"), ("--seed", "1"))
    )
    assert plain == zero == zero_again
    for group in (lambda result: result["overall"], lambda result: result["by_difficulty"]["easy"]):
        assert group(zero)["ci95"] != group(one)["ci95"]


def test_the_report_names_both_sides_and_shows_the_20_that_changed_most(
    tmp_path: Path, capsys: Any
) -> None:
    scores = {f"q{number:02}": number / 40 for number in range(1, 22)}
    long = {"answer": "x" * 61}
    before = [
        *(record(name, 0.0) for name in scores),
        record("bad", 0.5, answer="y" * 60),
        record("once", None),
    ]
    a = evaluation(tmp_path / "a", [*before, record("gone", 1.0)])
    changed = record("bad", 0.25, answer="", stop_reason="length")
    other = {"file": "e.parquet", "sha256": "1" * 64, "questions": 2}
    b = evaluation(
        tmp_path / "b",
        [*(record(name, score, **long) for name, score in scores.items()), changed],
        data=other,
        model="n",
    )
    assert compare.main([str(a), str(b)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# B against A\n")
    assert f"A: m ({a})" in text
    assert f"B: n ({b})" in text
    assert "THE DATA FILES DIFFER (d.parquet and e.parquet)" in text
    assert "1 questions are left out: only one of the two has a score for them" in text
    result = compared(a, b, capsys)
    assert (result["a"]["unscored"], result["b"]["unscored"]) == (1, 0)
    low, high = (f"{100 * bound:+.1f}" for bound in result["overall"]["ci95"])
    assert f"(95 % interval of the difference in points: {low} to {high})" in text
    assert f"| overall | 22 | 2.3 | 27.4 | +25.1 | {low} to {high} | 21 | 1 |" in text
    assert "21 questions better, the 20 that changed most\n" in text
    assert "1 questions worse\n" in text
    assert "| q02 | 0.0 | 5.0 |" in text
    assert "q01 |" not in text, "it changed least"
    assert f"| {'x' * 59}… |" in text
    assert f"| 50.0 | 25.0 | {'y' * 60} | (length) |" in text


def test_sides_have_the_names_that_are_given_and_20_changes_are_all_shown(tmp_path: Path) -> None:
    names = [f"q{number}" for number in range(20)]
    before = evaluation(tmp_path / "a", [record(name, 0.0) for name in names])
    after = evaluation(tmp_path / "b", [record(name, 1.0) for name in names], judge="llm")
    read = [compare.read_evaluation(folder) for folder in (before, after)]
    report = compare.report_of(compare.compare(*read, seed=0), ("before", "after"))
    assert "CONDITIONS DIFFER: judge was reference in before and llm in after" in report.facts
    assert list(report.tables) == ["", "20 questions better"]


def test_json_is_written_in_the_letters_of_the_questions(tmp_path: Path, capsys: Any) -> None:
    a = evaluation(tmp_path / "a", [record("x", 0.0, question="怎么保存？")])
    b = evaluation(tmp_path / "b", [record("x", 1.0, question="怎么保存？")])
    assert compare.main([str(a), str(b), "--json"]) == 0
    assert "怎么保存？" in capsys.readouterr().out


NOTHING = "no difference that chance could not make"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ([0.1] * 20, "better"),
        ([-0.1] * 20, "worse"),
        ([0.0] * 20, NOTHING),
        ([0.5, -0.5] * 10, NOTHING),
        ([0.5, -0.6] * 10, NOTHING),  # lower on average, as it may be by chance
        ([0.6, -0.5] * 10, NOTHING),
        ([0.5, -0.1] * 10, "better"),
        ([-0.5, 0.1] * 10, "worse"),
        ([-0.9], NOTHING),  # of one question
    ],
)
def test_chance_is_not_called_a_change(
    tmp_path: Path, capsys: Any, changes: list[float], verdict: str
) -> None:
    """A checkpoint would be kept or thrown away for noise."""
    after = {str(number): 0.5 + change / 2 for number, change in enumerate(changes)}
    before = {str(number): 0.5 - change / 2 for number, change in enumerate(changes)}
    a = evaluation(tmp_path / "a", [record(name, score) for name, score in before.items()])
    b = evaluation(tmp_path / "b", [record(name, score) for name, score in after.items()])
    assert compare.main([str(a), str(b)]) == 0
    assert f"B against A: {verdict} (" in capsys.readouterr().out


def test_one_question_in_common_leaves_all_differences_possible(
    tmp_path: Path, capsys: Any
) -> None:
    a = evaluation(tmp_path / "a", [record("x", 0.5)])
    b = evaluation(tmp_path / "b", [record("x", 0.75)])
    assert compared(a, b, capsys)["overall"]["ci95"] == [-1.0, 1.0]


def test_every_grouping_is_compared(tmp_path: Path, capsys: Any) -> None:
    a = evaluation(tmp_path / "a", [record("x", 0.0), record("y", 0.0, difficulty="hard")])
    wordings = {"x": {"wording": "seen"}, "y": {"wording": "unseen", "difficulty": "hard"}}
    b = evaluation(
        tmp_path / "b",
        [record(name, 1.0 if name == "x" else 0.5, **has) for name, has in wordings.items()],
    )
    result = compared(a, b, capsys)  # A is from before wordings were known: the tasks are the same
    assert {name: part["difference"] for name, part in result["by_wording"].items()} == {
        "seen": 1.0,
        "unseen": 0.5,
    }
    assert {name: part["difference"] for name, part in result["by_difficulty"].items()} == {
        "easy": 1.0,
        "hard": 0.5,
    }
    assert compare.main([str(a), str(b)]) == 0
    assert "| wording unseen | 1 | 0.0 | 50.0 | +50.0 |" in capsys.readouterr().out


def test_markdown_names_what_differs_and_escapes_texts(tmp_path: Path, capsys: Any) -> None:
    a = evaluation(tmp_path / "a", [record("x", 0.0), record("y", 0.0)])
    b = evaluation(tmp_path / "b", [record("x", 1.0), record("y", 0.0)], judge="llm", max_turns=5)
    assert compare.main([str(a), str(b)]) == 0
    text = capsys.readouterr().out
    assert "CONDITIONS DIFFER: judge was reference in A and llm in B" in text
    assert text.count("CONDITIONS DIFFER") == 2, "what is the same in both is no condition"
    heads = "| group | tasks | A | B | B - A | 95 % interval | better | worse |"
    assert f"\n{heads}\n" in text
    assert "\n| question | id | A | B | answer of A | answer of B |\n" in text
    assert "| overall | 2 | 0.0 | 50.0 | +50.0 | too few | 1 | 0 |" in text
    assert "CONDITIONS DIFFER: max_turns" in text
    assert "1 questions better" in text
    assert "answer \\| 1.0" in text
    assert "no difference that chance could not make" in text


def test_other_data_compares_what_both_have_and_says_so(tmp_path: Path, capsys: Any) -> None:
    a = evaluation(tmp_path / "a", [record("x", 0.0), record("y", 0.0), record("w", None)])
    other = {"file": "e.parquet", "sha256": "1" * 64, "questions": 2}
    changed = record("y", 1.0, question="another question")
    b = evaluation(tmp_path / "b", [record("x", 1.0), changed], data=other)
    result = compared(a, b, capsys)
    assert (result["overall"]["n"], result["left_out"], result["same_data"]) == (1, 1, False)
    assert compare.main([str(a), str(b)]) == 0
    assert "THE DATA FILES DIFFER" in capsys.readouterr().out


def test_another_way_of_sampling_is_said_and_none_at_all_is_not(
    tmp_path: Path, capsys: Any
) -> None:
    """A difference that temperature made would be taken for the model's."""
    greedy = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 9}
    a = evaluation(tmp_path / "a", [record("x", 0.0)])
    b = evaluation(tmp_path / "b", [record("x", 0.0)], sampling=greedy, model="n", k=2, seed=3)
    c = evaluation(tmp_path / "c", [record("x", 0.0)], sampling=None, kind="gold", model="gold")
    assert compared(a, b, capsys)["different_conditions"]["sampling"][1] == greedy
    assert "sampling" not in compared(a, c, capsys)["different_conditions"]


def test_what_cannot_be_compared_is_told_in_one_line(tmp_path: Path, capsys: Any) -> None:
    a = evaluation(tmp_path / "a", [record("x", 0.0)])
    b = evaluation(tmp_path / "b", [record("y", 0.0)])
    c = evaluation(tmp_path / "c", [record("x", 0.0)])
    change(c, agent="gone")
    cases = (
        (b, "no question in common"),
        (tmp_path, "not the result of an evaluation"),
        (c, "no agent 'gone'"),
    )
    for other, expected in cases:
        assert compare.main([str(a), str(other)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert expected in line


def test_two_agents_are_not_compared_and_the_headline_is_the_agents(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registered", {"guessing": GuessingAgent()})
    a = evaluation(
        tmp_path / "a",
        [record("x", 0.0, facts={"silent": 0.75}), record("y", 1.0, facts={"silent": None})],
    )
    b = evaluation(
        tmp_path / "b",
        [record("x", 0.0, facts={"silent": 0.5}), record("y", 1.0, facts={"silent": 0.5})],
    )
    change(b, agent="guessing")
    assert compare.main([str(a), str(b)]) == 2
    assert "is of the sql agent" in capsys.readouterr().err
    change(a, agent="guessing")
    overall = compared(a, b, capsys)["overall"]
    assert (overall["n"], overall["difference"]) == (1, -0.25)


def change(folder: Path, **values: Any) -> None:
    path = folder / "scores.json"
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8"
    )
