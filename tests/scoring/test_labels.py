"""The hand-made labels: that there are enough of every kind, and that the offline judge agrees with the held-out half.

A line of `labels.jsonl` is a question with its gold, an answer, and what a person finds the answer worth. Labels were
written before the judge was tuned. Cases of a task type in the order of sha256(case) are held out and tuned on in turn;
the answers to one question are never in both halves.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from pathlib import Path

import pandas
import pytest

from scoring.judge import Case, ReferenceJudge

ROWS = [json.loads(line) for line in (Path(__file__).parent / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
SHARE = {"right": (1.0, 1.0), "partly": (0.1, 0.9), "wrong": (0.0, 0.0), "evasive": (0.0, 0.0)}


def case_of(row):
    gold = {"structured_gt": row["structured_gt"], "evidence": row["evidence"]}
    return Case(row["question"], row["answer"], row["reference"], [], gold)


def spearman(half):
    rows = [row for row in ROWS if row["half"] == half]
    judge = ReferenceJudge()
    judged = pandas.Series([judge.compare(case_of(row)).score for row in rows])
    return judged.rank().corr(pandas.Series([row["score"] for row in rows]).rank())


def test_there_are_enough_labels_of_every_kind():
    assert len(ROWS) >= 320
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert len({(row["question"], row["answer"]) for row in ROWS}) == len(ROWS)
    assert len({row["task_type"] for row in ROWS}) == 9
    assert min(Counter(row["label"] for row in ROWS).values()) >= 40
    for row in ROWS:
        low, high = SHARE[row["label"]]
        assert low <= row["score"] <= high


def test_the_halves_follow_the_rule():
    cases = defaultdict(set)
    for row in ROWS:
        cases[row["task_type"]].add(row["id"].rpartition("-")[0])
    ordered = {
        kind: sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest()) for kind, names in cases.items()
    }
    held_out = {name for names in ordered.values() for name in names[::2]}
    assert {row["id"].rpartition("-")[0] for row in ROWS if row["half"] == "held_out"} == held_out
    assert sum(row["half"] == "held_out" for row in ROWS) >= len(ROWS) / 2


@pytest.mark.parametrize("half", ["tune", "held_out"])
def test_the_offline_judge_agrees_with_the_labels(half):
    assert spearman(half) >= 0.8


def test_right_answers_score_above_wrong_ones():
    judge = ReferenceJudge()
    means = {
        label: pandas.Series([judge.compare(case_of(row)).score for row in ROWS if row["label"] == label]).mean()
        for label in SHARE
    }
    assert means["right"] > 0.85 > means["partly"] > 0.3 > means["wrong"]
    assert max(means["wrong"], means["evasive"]) < 0.1
