"""`make mutants`: what it says of a change that no test notices, and of one whose place is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.mutants import __main__ as mutants
from tests.messages import missing

pytestmark = pytest.mark.system

CODE = """def total(values, seen):
    seen.append(values)
    return sum(value for value in values if value)
"""
TEST = "from counted.code import total\ndef test_one(): assert total([1, 2], []) == 3\n"
HYPOTHESIS = "from hypothesis import settings\nsettings.register_profile('mutants')\n"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A repository of one module with one test."""
    files = {
        "counted/__init__.py": "",
        "counted/code.py": CODE,
        "tests/test_code.py": TEST,
        "tests/conftest.py": HYPOTHESIS,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(mutants, "copy_repository", lambda room: (tmp_path, list(files)))

    def change(*changes: tuple[str, str]) -> None:
        named = [
            {"what": old, "file": "counted/code.py", "old": old, "new": new, "test": "test_code.py"}
            for old, new in changes
        ]
        monkeypatch.setattr(mutants, "named_changes", lambda: named)

    return change


def test_a_named_change_that_no_test_notices_fails(
    small: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small(("sum(", "max("), ("seen.append(values)", "pass"), ("not there", "pass"))
    assert mutants.main(["named"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in said[:3]] == [
        "noticed: sum(",
        "NOT NOTICED: seen.append(values)",
        "skipped, its place is gone: not there",
    ]
    assert (tmp_path / "counted/code.py").read_text() == CODE


def test_a_change_that_keeps_the_test_from_running_is_no_answer(
    small: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    small(("def total", "def other"))
    assert mutants.main(["named"]) == 1
    assert "NO ANSWER: def total" in capsys.readouterr().out


def test_a_room_that_does_not_exist_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants.main(["nowhere"]) == 2
    assert not missing(capsys.readouterr().err, "nowhere", "sequences")
