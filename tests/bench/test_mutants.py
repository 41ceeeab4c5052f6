"""The table of `make mutants` names what exists, and a room there is not is a wrong usage.

Keeps of docs/testing.md that every room can be run alone.
"""

import tomllib
from pathlib import Path

import pytest

from common.settings import ROOT
from tests import mutants


def test_the_rooms_name_files_and_tests_that_exist() -> None:
    for room, parts in mutants.ROOMS.items():
        for entry in [*parts["files"], *(f"tests/{name}" for name in parts["tests"])]:
            file, _, name = entry.partition("::")
            assert (ROOT / file).is_file(), f"{room}: {entry}"
            assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("change", mutants.CORRUPTIONS, ids=lambda change: change["what"])
def test_a_named_corruption_is_one_change_of_code_that_is_there_with_a_test_that_is_there(
    change: dict[str, str],
) -> None:
    """One that changes nothing would pass as noticed, or be taken for a gap."""
    text = (ROOT / change["file"]).read_text(encoding="utf-8")
    assert text.count(change["old"]) == 1
    changed = text.replace(change["old"], change["new"])
    if change["file"].endswith(".py"):
        compile(changed, change["file"], "exec")
    else:
        tomllib.loads(changed)
    file, _, name = change["test"].partition("::")
    assert f"def {name}{'(' if name else ''}" in (ROOT / "tests" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(("file", "old", "new"), mutants.ACCEPTED)
def test_an_accepted_survivor_changes_code_that_is_there_and_says_why(
    file: str, old: str, new: str
) -> None:
    """One whose code is gone would be taken for a reason some day."""
    lines = [line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    assert any(lines[at : at + old.count("\n") + 1] == old.split("\n") for at in range(len(lines)))
    assert new != old
    assert mutants.ACCEPTED[file, old, new]


CODE = """def total(values, seen):
    seen.append(values)
    return sum(value for value in values if value)
"""
DELETED = {
    ("counted/code.py", "seen.append(values)", "None"),
    (
        "counted/code.py",
        "return sum(value for value in values if value)",
        "return sum(value for value in values)",
    ),
}


def test_a_call_and_a_filter_are_deleted_and_must_be_noticed_or_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["counted/code.py", "counted/__init__.py", "tests/test_code.py", "tests/conftest.py"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / names[0]).write_text(CODE)
    (tmp_path / names[2]).write_text(
        "import subprocess\nfrom counted.code import total\nLEFT = subprocess.Popen(['true'])\n"
        "def test_one(): assert total([1, 2], []) == 3\n"
    )
    (tmp_path / names[3]).write_text(
        "from hypothesis import settings\nsettings.register_profile('mutants')\n"
    )
    room = {"files": names[:1], "tests": ["test_code.py"]}
    monkeypatch.setattr(mutants, "ROOMS", {"small": room})
    monkeypatch.setattr(mutants, "copy", lambda _: (tmp_path, names))
    monkeypatch.setattr(mutants, "ACCEPTED", {})
    assert mutants.run("small") == "small"
    said = capsys.readouterr().out
    changed = [line[1:].strip() for line in said.splitlines() if line[:2] in ("- ", "+ ")]
    survivors = {(names[0], old, new) for old, new in zip(changed[::2], changed[1::2], strict=True)}
    assert survivors >= DELETED
    monkeypatch.setattr(mutants, "ACCEPTED", dict.fromkeys(survivors, "why"))
    assert mutants.run("small") == ""


def test_a_corruption_that_no_test_notices_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "counted.py").write_text("ONE = 1\nTWO = 2\n")
    (tmp_path / "tests" / "test_code.py").write_text(
        "from counted import ONE\ndef test_one(): assert ONE == 1\n"
    )
    monkeypatch.setattr(mutants, "copy", lambda room: (tmp_path, []))
    changes = [
        {"what": str(n), "file": "counted.py", "old": f" {n}", "new": " 3", "test": "test_code.py"}
        for n in (1, 2)
    ]
    monkeypatch.setattr(mutants, "CORRUPTIONS", changes)
    monkeypatch.setattr(mutants, "HEAVY", ())
    assert mutants.run_corruptions() == "corruptions"
    said = capsys.readouterr().out.splitlines()
    assert said == ["noticed: 1", "NOT NOTICED: 2", "corruptions: 1 of 2 noticed"]
    assert (tmp_path / "counted.py").read_text() == "ONE = 1\nTWO = 2\n"


BROKEN = {
    "test_import.py": "from counted import NOTHING\ndef test_one(): assert NOTHING\n",
    "test_late_import.py": "def test_one():\n    from counted import NOTHING\n    assert NOTHING\n",
    "test_fixture.py": "import pytest\n@pytest.fixture\ndef one(): assert False\n"
    "def test_one(one): pass\n",
    "test_nothing.py": "",
    "test_crash.py": "import os\ndef test_one(): os._exit(1)\n",
    "test_end.py": "import pytest\ndef test_one(): pytest.exit('ended')\n",
}


@pytest.mark.parametrize(
    ("test", "code"),
    [*zip(BROKEN, (2, 1, 1, 5, 1, 2), strict=True), ("test_code.py::test_gone", 4)],
)
def test_a_test_that_cannot_be_run_has_noticed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, test: str, code: int
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "counted.py").write_text("ONE = 1\n")
    (tmp_path / "tests" / "test_code.py").touch()
    for name, text in BROKEN.items():
        (tmp_path / "tests" / name).write_text(text)
    monkeypatch.setattr(mutants, "copy", lambda room: (tmp_path, []))
    change = {"what": "x", "file": "counted.py", "old": " 1", "new": " 2", "test": test}
    monkeypatch.setattr(mutants, "CORRUPTIONS", [change])
    monkeypatch.setattr(mutants, "HEAVY", ())
    assert mutants.run_corruptions() == "corruptions"
    said = capsys.readouterr().out.splitlines()
    assert said == [f"NO ANSWER ({test}: exit code {code}): x", "corruptions: 0 of 1 noticed"]


def test_a_room_there_is_not_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants.main(["nowhere"]) == 2
    assert "there is no room nowhere; the rooms are sequences, " in capsys.readouterr().err
