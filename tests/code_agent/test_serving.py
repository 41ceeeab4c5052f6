"""A folder is served for the length of a run, by this project's own server; what answers already is
left alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from code_agent import serving
from code_agent.serving import served
from common.command import Failure


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in the interpreter's place, which would import the engine."""
    program = folder / "python"
    program.write_text(
        f'#!/bin/sh\necho $$ > {folder}/pid\necho "$@" > {folder}/arguments\n{script}\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setattr(serving.sys, "executable", str(program))


def test_a_folder_is_served_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = "echo 'starting vLLM'; echo \"http://127.0.0.1:9/v1 serves x as 'policy'; Ctrl-C ends it\"; exec sleep 60"
    stand_in(tmp_path, says, monkeypatch)
    given = {"model_type": "vLLM", "model_name": str(tmp_path), "temperature": 0.0}
    with served(given, tmp_path / "vllm.log") as section:
        assert section == given | {"base_url": "http://127.0.0.1:9/v1", "model_name": "policy"}
        pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    started = (tmp_path / "arguments").read_text(encoding="utf-8")
    assert started.startswith(f"-m common.parent {os.getpid()} ")
    assert " -m training.serve " in started


def test_a_server_that_does_not_start_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "echo 'serve: no such model'; exit 2", monkeypatch)
    section = {"model_type": "vLLM", "model_name": str(tmp_path)}
    with (
        pytest.raises(Failure, match="serve: no such model"),
        served(section, tmp_path / "vllm.log"),
    ):
        raise AssertionError


@pytest.mark.parametrize(
    "change", [{"port": 8000}, {"base_url": "http://x/v1"}, {"model_type": "litellm"}]
)
def test_what_answers_elsewhere_is_left_alone(tmp_path: Path, change: dict[str, object]) -> None:
    section = {"model_type": "vLLM", "model_name": str(tmp_path)} | change
    with served(section, tmp_path / "vllm.log") as found:
        assert found is section
