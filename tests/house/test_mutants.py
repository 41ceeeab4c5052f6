"""The table of `make mutants` names what exists, and a room there is not is a wrong usage.

Keeps of docs/testing.md that every room can be run alone.
"""

import pytest

from common.settings import ROOT
from tests import mutants


def test_the_rooms_name_files_and_tests_that_exist() -> None:
    for room, parts in mutants.ROOMS.items():
        for name in [*parts["files"], *(f"tests/{name}" for name in parts["tests"])]:
            assert (ROOT / name).is_file(), f"{room}: {name}"


def test_a_room_there_is_not_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants.main(["nowhere"]) == 2
    assert "there is no room nowhere; the rooms are sequences, " in capsys.readouterr().err
