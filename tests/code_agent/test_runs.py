"""`main.py` and `rollout.py` play a real endpoint, keep files, go on, and say what is wrong."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from code_agent import tasks
from code_agent.environment import CodeEnvironment
from code_agent.medagentgym import histories, runs
from code_agent.medagentgym.histories import History, read, write
from code_agent.protocol import Action
from code_agent.task import CodeTask
from common.llm import retry
from common.settings import ROOT
from tests.code_agent.cases import COUNT, Small
from tests.common.llm_server import KEY, Fault, waits_at_once
from tests.corpora import cases_of
from tests.messages import missing

pytestmark = pytest.mark.system
RUN = str(Action("validate_code", {"code": COUNT.replace("\\n", "\n")}))
SUBMIT = str(Action("submit"))
Config = Callable[..., list[str]]


@pytest.fixture
def config(tmp_path, tables, llm, monkeypatch):
    """Flags for a configuration file in the reference's form, with other values where given."""
    monkeypatch.setitem(tasks.SETS, "small", Small)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    llm.answer = lambda body: SUBMIT if len(body["messages"]) > 2 else RUN

    def flags(llm_section: dict[str, Any] | None = None, **other: Any) -> list[str]:
        section = {"model_type": "vLLM", "model_name": "stand-in", "base_url": llm.url}
        section |= {"max_new_tokens": 64, "temperature": 0.0} | (llm_section or {})
        file = {
            "Agent": {"llm": section, "n_retry": 2, "retry_delay": 2},
            "Data": {"metadata_path": "data/metadata.json", "data_path": str(tables)},
            "Env": {"n_retry": 3},
            "task": "small",
            "credentials_path": str(tmp_path / "credentials.toml"),
            "work_dir": str(tmp_path / "work"),
            "result_dir_tag": "tag",
            "start_idx": 0,
            "end_idx": -1,
            "num_steps": 4,
        } | other
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(file), encoding="utf-8")
        return ["--config_path", str(path)]

    return flags


def folder(tmp_path: Path) -> Path:
    return tmp_path / "work" / "small" / "tag" / "test"


def finished(tmp_path: Path, number: int = 0) -> History:
    found = read(folder(tmp_path) / f"history_{number}.json")
    assert found is not None
    return found


@pytest.mark.usefixtures("bubblewrap")
def test_a_run_writes_histories_and_a_second_one_counts_them(config, tmp_path, llm, capsys):
    assert runs.main(config()) == 0
    asked = len(llm.requests)
    first = json.loads((folder(tmp_path) / "history_0.json").read_text(encoding="utf-8"))
    roles = ["system", "user", "assistant", "user", "assistant"]
    assert [message["role"] for message in first[:-1]] == roles
    assert (first[-1]["result"], first[-1]["score"], first[-1]["answer"]) == ("success", 1.0, "3")
    assert not finished(tmp_path, 1).succeeded
    assert "Success Rate: 0.5" in capsys.readouterr().out
    assert runs.main(config()) == 0
    assert len(llm.requests) == asked
    assert "Success Rate: 0.5" in capsys.readouterr().out
    records = (tmp_path / "work" / "running_records.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["success_rate"] for line in records.splitlines()] == [0.5, 0.5]


@pytest.mark.usefixtures("bubblewrap")
def test_an_unfinished_file_is_played_again(config, tmp_path, llm):
    folder(tmp_path).mkdir(parents=True)
    for text in ("[", '[{"role": "user", "content": "?"}]', '[{"result": "unscored"}]'):
        (folder(tmp_path) / "history_0.json").write_text(text, encoding="utf-8")
        assert runs.main([*config(), "--end_idx", "1"]) == 0
        assert finished(tmp_path).succeeded


@pytest.mark.usefixtures("bubblewrap")
def test_half_a_character_in_an_answer_ends_no_run(config, tmp_path, llm):
    llm.answer = lambda body: str(Action("submit", {"answer": "HALF"})).replace("HALF", r"\ud83d")
    assert runs.main([*config(), "--end_idx", "1"]) == 0
    assert finished(tmp_path).ending["answer"] == "?"


@pytest.mark.usefixtures("bubblewrap")
def test_zero_is_a_value_and_flags_hold_over_the_file(config, tmp_path):
    assert runs.main([*config(start_idx=1), "--start_idx", "0", "--end_idx", "1"]) == 0
    assert [path.name for path in folder(tmp_path).glob("*.json")] == ["history_0.json"]


@pytest.mark.usefixtures("bubblewrap")
def test_several_episodes_are_played_at_once(config, tmp_path, llm):
    both = threading.Barrier(2)

    def answer(body: dict[str, Any]) -> str:
        if len(body["messages"]) > 2:
            return SUBMIT
        both.wait(60)
        return RUN

    llm.answer = answer
    flags = ["--async_run", "--parallel_backend", "ray", "--n_jobs", "2"]
    assert runs.main([*config(), *flags]) == 0
    assert not both.broken, "each first reply waits for the other's"
    assert len(list(folder(tmp_path).glob("*.json"))) == 2


def test_the_tasks_are_those_of_the_mode(config, monkeypatch):
    asked: list[str] = []

    class OfAMode(Small):
        def __init__(self, data_path: Path, mode: str = "test") -> None:
            super().__init__(data_path, mode)
            asked.append(self.mode)

    monkeypatch.setitem(tasks.SETS, "small", OfAMode)
    for mode in ("train", "valid"):
        assert runs.main([*config(), "--mode", mode, "--start_idx", "5"]) == 2
    assert asked == ["train", "val"]


@pytest.mark.usefixtures("bubblewrap")
def test_429_is_tried_again_no_more_often_and_no_later_than_configured(
    config, tmp_path, llm, capsys, monkeypatch
):
    """A pause that the endpoint asks for is one of the tries."""
    with monkeypatch.context() as quick:
        quick.setattr(retry, "FIRST_WAIT", 0.01)
        llm.faults = [Fault(429, headers={"Retry-After": "0.01"}) for _ in range(50)]
        assert runs.main([*config(), "--end_idx", "1"]) == 1
    assert len(llm.requests) == (1 + 2) * 3
    waits = waits_at_once(monkeypatch)
    llm.faults = [Fault(429)] * 50
    assert runs.main([*config(), "--start_idx", "1"]) == 1
    ending = json.loads((folder(tmp_path) / "history_1.json").read_text(encoding="utf-8"))[-1]
    assert ending["result"] == "unscored"
    assert "429" in ending["reason"]
    assert len(llm.faults) == 50 - (1 + 2) * 3, "a reply is asked for three times, with two retries"
    assert max(waits) == 2, "the waits grow to the configured retry_delay"
    assert not missing(capsys.readouterr().err, "none of 1")


WRONG = [
    *cases_of(__file__, "corpus/configurations"),
    {"file": {"credentials_path": __file__}, "said": [__file__]},
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case["said"][0])
def test_a_wrong_configuration_gets_one_line(config, capsys, case):
    assert runs.main([*config(**case["file"]), *case.get("flags", ())]) == 2
    errors = capsys.readouterr().err
    assert not missing(errors, *case["said"])
    assert errors.count("\n") == 1


@pytest.mark.parametrize("script", ["main", "rollout"])
@pytest.mark.parametrize(
    ("flags", "said"),
    [(["--task", "nope"], ["'nope'", "ehr_demo"]), (["--end_idx", "0"], ["start_idx 0", "-1"])],
)
def test_data_of_a_wrong_call_is_refused_in_the_name_of_the_script(
    config, tmp_path, script, flags, said
):
    asked = [*config(task="ehr_demo"), *flags, "--to-sft", str(tmp_path / "sft.jsonl")]
    command = [sys.executable, f"code_agent/{script}.py", *asked]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"{script}: ")
    assert not missing(ended.stderr, *said)


class Unusable(Small):
    def unusable(self, task: CodeTask) -> str:
        return "needs the package no_such_package"


@pytest.mark.usefixtures("bubblewrap")
def test_a_set_that_cannot_be_played_is_refused_before_the_first_call(
    config, llm, capsys, monkeypatch
):
    flags = config()
    monkeypatch.setitem(tasks.SETS, "small", Unusable)
    assert runs.main(flags) == 2
    assert not missing(capsys.readouterr().err, "2 of 2", "no_such_package")
    assert llm.requests == []


def test_a_run_without_a_sandbox_calls_no_model(config, llm, capsys):
    assert runs.main(config()) == 1
    assert "bubblewrap" in capsys.readouterr().err
    assert llm.requests == []


def test_an_endpoint_that_always_fails_ends_the_run(config, llm, capsys, monkeypatch):
    async def passes(environment: CodeEnvironment) -> None:
        pass

    monkeypatch.setattr(CodeEnvironment, "check", passes)
    llm.faults = [Fault(403) for _ in range(100)]
    assert runs.main([*config(), "--num_rollouts", "3"]) == 1
    assert "5 episodes" in capsys.readouterr().err


@pytest.mark.usefixtures("bubblewrap")
def test_keys_come_from_the_credentials_and_are_written_nowhere(
    config, tmp_path, llm, capsys, monkeypatch
):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    (tmp_path / "credentials.toml").write_text(f'OPENAI_API_KEY = "{KEY}"\n', encoding="utf-8")
    llm.faults = [Fault(401)]
    (tmp_path / "stand-in").mkdir()  # a folder of the model's name, which is not served
    monkeypatch.chdir(tmp_path)
    assert runs.main(config({"model_type": "OpenAI"})) == 1
    assert llm.keys == {f"Bearer {KEY}"}
    said = capsys.readouterr()
    written = "".join(
        path.read_text(encoding="utf-8") for path in (tmp_path / "work").rglob("*.json*")
    )
    assert KEY not in said.out + said.err + written


@pytest.mark.usefixtures("bubblewrap")
def test_rollouts_are_played_scored_and_become_data(config, tmp_path, llm, capsys):
    wrong = str(Action("submit", {"answer": "7"}))
    said = iter([RUN, SUBMIT, wrong, RUN, SUBMIT])
    llm.answer = lambda body: next(said)
    flags = [*config(), "--end_idx", "1", "--num_rollouts", "3"]
    assert runs.main(flags) == 0
    assert sorted(path.name for path in folder(tmp_path).glob("*.json")) == [
        f"history_0_{k}.json" for k in range(3)
    ]
    capsys.readouterr()
    assert histories.main(["--local_path", str(folder(tmp_path))]) == 0
    said = capsys.readouterr().out
    assert not missing(said, "1 tasks", "3 episodes", "pass@3 100.0%", f"Success Rate: {2 / 3}")
    sft, dpo = tmp_path / "sft.jsonl", tmp_path / "dpo.jsonl"
    assert runs.main([*flags, "--to-sft", str(sft), "--to-dpo", str(dpo)]) == 0
    [kept] = [json.loads(line) for line in sft.read_text(encoding="utf-8").splitlines()]
    assert [message["role"] for message in kept["messages"]][-1] == "assistant"
    [pair] = [json.loads(line) for line in dpo.read_text(encoding="utf-8").splitlines()]
    assert [message["role"] for message in pair["prompt"]] == ["system", "user"]
    assert pair["chosen"][0]["content"] == RUN
    assert pair["rejected"] == [{"role": "assistant", "content": wrong}]
    assert runs.main([*flags, "--to-sft", str(sft)]) == 2  # it exists


def test_the_success_rate_is_the_tables(tmp_path, capsys):
    """A task with one scored episode weighs as much as one with eight."""
    for number in range(8):
        write(tmp_path / f"history_0_{number}.json", [], {"result": "success"})
    write(tmp_path / "history_1_0.json", [], {"result": "failure", "score": None})
    (tmp_path / "history_2_0.json").write_text("[", encoding="utf-8")
    assert histories.main(["--local_path", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert "Success Rate: 0.5\n" in output.out
    assert output.err.startswith("1 episodes")


def test_data_of_nothing_is_refused(config, tmp_path, capsys):
    assert runs.main([*config(), "--to-sft", str(tmp_path / "sft.jsonl")]) == 2
    assert "no right episode" in capsys.readouterr().err


@pytest.mark.usefixtures("bubblewrap")
def test_a_run_that_is_stopped_keeps_what_is_done_and_says_so(config, tmp_path, llm):
    """As a script, on the bundled questions: the second episode's answer never comes."""

    def answer(body: dict[str, Any]) -> str:
        if (folder / "history_0.json").exists():
            process.send_signal(signal.SIGINT)
            ended.wait(120)
        return str(Action("submit", {"answer": "0"}))

    ended = threading.Event()
    folder, llm.answer = tmp_path / "work" / "ehr_demo" / "tag" / "test", answer
    flags = config(task="ehr_demo", Data={"data_path": None}, end_idx=3)
    command = [sys.executable, "code_agent/main.py", *flags]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    _, errors = process.communicate(timeout=120)
    ended.set()
    assert process.returncode == 130
    assert not missing(errors.splitlines()[-1], "interrupted", "same command")
    assert [path.name for path in folder.glob("*.json")] == ["history_0.json"]
