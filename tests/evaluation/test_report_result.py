"""Did it get better: the first screen of a report says so only where the numbers do."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.report.page import read
from evaluation.report.result import NO_VALIDATION, NOT_ENDED, ONE_VALIDATION, VERDICTS
from tests.corpora import write_lines
from tests.evaluation.evaluations import evaluation, record
from tests.evaluation.folders import rollout, training_run


def cards(*folders: Path) -> list[dict[str, Any]]:
    return list(read(folders).shared["results"])


def scored(folder: Path, *scores: float | None) -> Path:
    return evaluation(folder, [record(f"t{n}", score) for n, score in enumerate(scores)])


def trained(folder: Path, first: list[float], last: list[float]) -> Path:
    """A training run with a validation before it and one after its third step."""
    run = training_run(folder)
    played = [rollout(0, "val", reward, index=n, task_type="a") for n, reward in enumerate(first)]
    played += [rollout(3, "val", reward, index=n, task_type="a") for n, reward in enumerate(last)]
    lost = rollout(3, reward=None, cause="judge_failed")
    write_lines(run / "episodes.jsonl", [*played, rollout(1), lost])
    return run


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([0.0] * 12, [1.0] * 9 + [0.0] * 3, "better"),
        ([1.0] * 12, [0.0] * 11 + [1.0], "worse"),
        ([1.0, 0.0, 0.0, 1.0] * 3, [0.0, 1.0] * 6, "unclear"),
    ],
)
def test_two_evaluations_have_one_card_that_says_what_the_interval_says(
    tmp_path, before, after, verdict
):
    [card] = cards(scored(tmp_path / "before", *before), scored(tmp_path / "after", *after))
    low, high = map(float, card["bounds"])
    assert low <= float(card["change"]) <= high
    assert (card["tone"], card["verdict"]) == (verdict, VERDICTS[verdict])
    assert card["title"] == ["after", "before"]
    assert dict(card["facts"])["episodes"] == 24


def test_fewer_than_ten_tasks_give_no_verdict_and_no_interval(tmp_path):
    few = [scored(tmp_path / "a", *[0.0] * 9), scored(tmp_path / "b", *[1.0] * 9)]
    [card] = cards(*few)
    assert (card["tone"], card["bounds"], card["change"]) == ("too few", None, "+100.0")
    [alone] = cards(few[0])
    assert alone["verdict"] == VERDICTS["too few"]
    assert "bounds" not in alone


def test_a_training_whose_evaluations_are_compared_has_no_second_verdict(tmp_path):
    before = scored(tmp_path / "before", *[0.0, 1.0] * 6)
    run = trained(tmp_path / "run", [0.0, 0.2] * 6, [1.0, 0.8] * 6)
    after = scored(tmp_path / "after", *[0.0, 1.0] * 6)
    compared, training = cards(before, run, after)
    assert compared["tone"] == "unclear"
    assert (training["tone"], training["verdict"], training["before"]) == ("", "", "0.100")


def test_a_training_run_is_its_first_validation_and_its_last(tmp_path):
    run = trained(tmp_path / "run", [0.0, 0.2] * 6, [1.0, 0.8] * 6)
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | {"seconds": {"total": 90}}))
    [card] = cards(run)
    assert card["tone"] == "better"
    assert (card["before"], card["after"]) == ("0.100", "0.900")
    facts = {"steps": 3, "reward in training": "0.100 → 0.300", "episodes": 26}
    assert dict(card["facts"]) == {**facts, "minutes": "1.5", "unscored": 1}
    records = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    for one in records:
        one["group"] = str(one.pop("index", ""))  # which older runs do not have
    write_lines(run / "episodes.jsonl", records)
    assert cards(run) == [card]
    [few] = cards(trained(tmp_path / "few", [0.0] * 4, [1.0] * 4))
    assert (few["tone"], few["bounds"]) == ("too few", None)


def test_tasks_without_a_score_in_one_validation_are_no_change(tmp_path):
    [card] = cards(trained(tmp_path / "run", [1.0] * 12 + [0.0] * 12, [1.0] * 12))
    assert (card["before"], card["after"], card["change"]) == ("1.000", "1.000", "+0.000")
    assert card["tone"] == "unclear"


def test_what_was_measured_once_or_not_at_all_is_no_change(tmp_path):
    [once] = cards(trained(tmp_path / "once", [], [1.0] * 12))
    assert (once["verdict"], once["after"]) == (ONE_VALIDATION, "1.000")
    [never] = cards(trained(tmp_path / "never", [], []))
    assert never["verdict"] == NO_VALIDATION
    (tmp_path / "never" / "summary.json").unlink()
    [died] = cards(tmp_path / "never")
    assert died["verdict"] == NOT_ENDED
    assert {"change", "after"}.isdisjoint(once.keys() & never.keys() & died.keys())
