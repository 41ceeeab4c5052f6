"""The measure of a simulator's model, with a stand-in that answers from the records, or worse, and
an LLM judge.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.llm import open_cache
from common.settings import load_settings
from diagnosis_agent.agent import AGENT
from diagnosis_agent.llm_simulator import context, split_range
from diagnosis_agent.task import task_of
from tests.common.llm_server import KEY, Fault, LLMServer
from utils.simulator_quality import main

EVENT = re.compile(r"Exam name:\n(.+)\nExam results:\n")


@pytest.fixture
def place(
    llm: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_waiting: None
) -> Iterator[Path]:
    for name in [name for name in os.environ if name.startswith(("TEACHER", "SIMULATOR"))]:
        monkeypatch.delenv(name)
    where = {"MODEL": "EHRGenerator", "BASE_URL": llm.url, "API_KEY": KEY, "TIMEOUT": "5"}
    for name, value in where.items():
        monkeypatch.setenv(f"SIMULATOR_{name}", value)
    monkeypatch.setenv("LLM_CACHE", str(tmp_path / "cache.sqlite"))
    load_settings.cache_clear()
    yield tmp_path
    load_settings.cache_clear()


def from_the_records(change: Callable[[str], str] = str) -> Callable[[dict[str, Any]], str]:
    """Completions that hold what the record has, changed."""
    results = {
        (context(task), name): split_range(text)[0]
        for task in map(task_of, AGENT.rows(AGENT.splits["test"]))
        for name, text in task.results.items()
    }

    def answer(body: dict[str, Any]) -> str:
        patient = body["prompt"].partition("Exam name:\n")[0]
        return change(results.get((patient, EVENT.findall(body["prompt"])[-1]), "well")) + "<SEP>"

    return answer


def measured(place: Path, *flags: str) -> dict[str, Any]:
    output = place / "out.json"
    common = ["--simulator", "llm", "--n", "12", "--output", str(output), "--force"]
    assert main([*common, *flags]) == 0
    return dict(json.loads(output.read_text()))


def test_the_records_themselves_are_perfect(
    llm: LLMServer, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    llm.answer = from_the_records()
    scores = measured(place)
    assert (scores["judge"], scores["data"]["cases"]) == ("rules", 12)
    for mode in ("single", "chain"):
        found = scores[mode]
        assert found["similarity"] == pytest.approx(5)
        assert (found["consistency"], found["withheld"]) == (1, 0)
        assert (found["wasserstein"], found["spread"], found["variety"]) == (0, pytest.approx(1), 1)
        assert found["floor"] > 0
    assert (place / "out.md").read_text() in capsys.readouterr().out
    assert llm.requests[-1]["temperature"] == 1.0
    assert open_cache(load_settings().llm_cache).count() == 0


def test_a_chain_is_asked_after_its_own_results(llm: LLMServer, place: Path) -> None:
    llm.answer = from_the_records(lambda text: f"{text} indeed")
    measured(place, "--n", "1")
    events = [body["prompt"].count(" indeed<SEP>") for body in llm.requests]
    number = len(events[1:]) // 2
    assert events == [0] * (1 + number) + [*range(number)]


def test_what_names_the_diagnosis_is_counted(llm: LLMServer, place: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        name = body["prompt"].partition("Final Diagnosis:\n")[2].partition("\n")[0]
        return name if "complete blood count" in body["prompt"][-60:] else "well"

    llm.answer = answer
    assert measured(place, "--n", "3")["single"]["withheld"] == 3


def test_an_llm_judges_where_one_is_set(
    llm: LLMServer, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"MODEL": "openai/judge", "BASE_URL": llm.url, "API_KEY": KEY}.items():
        monkeypatch.setenv(f"TEACHER_{name}", value)
    load_settings.cache_clear()
    results = from_the_records()
    verdict = json.dumps({"similarity": 0.5, "consistency": 1})
    llm.answer = lambda body: verdict if "messages" in body else results(body)
    scores = measured(place, "--n", "1")
    assert scores["judge"] == "llm (openai/judge)"
    assert (scores["single"]["similarity"], scores["chain"]["consistency"]) == (2.5, 1)
    llm.answer = lambda body: "no verdict" if "messages" in body else results(body)
    assert main(["--simulator", "llm", "--n", "1", "--output", str(place / "other.json")]) == 1
    assert not (place / "other.json").exists()


def test_a_dead_simulator_is_one_line(
    llm: LLMServer, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    llm.faults = [Fault(503)] * 99
    assert main(["--simulator", "llm", "--output", str(place / "out.json")]) == 1
    message = capsys.readouterr().err.strip()
    assert "SIMULATOR_BASE_URL" in message
    assert "\n" not in message
    assert KEY not in message


def test_wrong_usage_is_told_before_anything_is_asked(
    llm: LLMServer, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--simulator", "llm", "--output"]
    with pytest.raises(SystemExit):
        main([*asked, str(place / "out.txt")])
    (place / "out.json").touch()
    assert main([*asked, str(place / "out.json")]) == 2
    assert "--force" in capsys.readouterr().err
    without = json.loads(json.dumps(AGENT.rows(AGENT.splits["val"])[0]))
    without["extra_info"]["examinations"] = []
    (place / "rows.jsonl").write_text(json.dumps(without))
    assert main([*asked, str(place / "x.json"), "--data", str(place / "rows.jsonl")]) == 2
    assert "rows.jsonl" in capsys.readouterr().err
    assert llm.requests == []
