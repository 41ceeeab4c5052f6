"""How programs end: the exit code and the one line for everything a user can cause."""

from __future__ import annotations

import argparse
import importlib

import pytest

from common.command import Failure, UsageError, number, positive, run_command
from common.settings import SettingsError
from tests.messages import missing


class SetupFailure(Failure):
    exit_code = 2


def failing(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    def body() -> int:
        raise error

    return run_command("program", body, afterwards="nothing was written"), capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no such file"), 2, "no such file"),
        (SettingsError("MAX_TURNS is 'x'"), 2, "MAX_TURNS is 'x'"),
        (SetupFailure("no model"), 2, "no model"),
        (Failure("down"), 1, "down; nothing was written"),
        (
            PermissionError(13, "Permission denied", "/x"),
            1,
            "Permission denied: /x; nothing was written",
        ),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
    ],
)
def test_what_a_user_can_cause_is_one_line(error, code, said, capsys) -> None:
    assert failing(error, capsys) == (code, f"program: {said}\n")


def test_a_missing_package_names_the_installation_and_a_broken_one_keeps_its_traceback(
    capsys,
) -> None:
    assert (
        run_command("program", lambda: importlib.import_module("no_such_package.part") and 0) == 2
    )
    said = capsys.readouterr().err
    assert not missing(said, "program: ", "no_such_package", "./install.sh --repair")
    assert said.count("\n") == 1
    with pytest.raises(ModuleNotFoundError):
        run_command("program", lambda: importlib.import_module("json.no_such_part") and 0)


def test_faults_of_the_program_are_not_hidden() -> None:
    for fault in (ValueError, RuntimeError, KeyError):
        with pytest.raises(fault):
            failing(fault(), None)  # type: ignore[arg-type]


def test_numbers_outside_their_bounds_are_refused() -> None:
    share = number(float, lambda value: 0 < value <= 1, "above 0 and at most 1")
    assert [share("0.5"), positive(int)("3")] == [0.5, 3]
    for parse, text in (
        (share, "nan"),
        (share, "1.1"),
        (positive(int), "0"),
        (positive(float), "inf"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}'"):
            parse(text)
