"""How programs end, and what they print: one line for everything a user can cause."""

import importlib
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.command import Failure, UsageError, run_command, start
from common.settings import SettingsError, load_settings
from common.terminal import printable
from tests.corpora import cases_of
from tests.messages import missing
from tests.programs import python
from tools.sql.settings import DatabaseSettings


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
        (PermissionError(13, "Denied", "/x"), 1, "Denied: /x; nothing was written"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
    ],
)
def test_what_a_user_can_cause_is_one_line(error, code, said, capsys):
    assert failing(error, capsys) == (code, f"program: {said}\n")


def test_a_command_is_shown_as_it_is_typed_here(capsys, monkeypatch, tmp_path):
    error = UsageError("make it with .venv/bin/python -m evaluation.play")
    own = Path(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(own.parent.parent.parent)
    assert f" {own.parent.parent.name}/bin/{own.name} -m" in failing(error, capsys)[1]
    monkeypatch.chdir(tmp_path)
    assert f" {own} -m" in failing(error, capsys)[1]
    removed = tmp_path / "removed"
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    assert f" {own} -m" in failing(error, capsys)[1]
    monkeypatch.setenv("PATH", str(own.parent))
    assert f" {own.name} -m" in failing(error, capsys)[1]


@pytest.mark.system
@pytest.mark.parametrize("flags", [["-m"], ["-um"], ["-X", "utf8", "-m"], []], ids=" ".join)
def test_a_program_is_named_as_it_is_started_whatever_pythons_flags(flags):
    words = [*flags, "evaluation.runs"] if flags else ["-mevaluation.runs"]
    helped = python(*words, "--help", check=True)
    assert " -m evaluation.runs [" in helped.stdout.split("\n")[0]


def importing(name: str) -> int:
    return run_command("program", lambda: importlib.import_module(name) and 0)


def test_a_missing_package_names_the_installation(capsys):
    assert importing("no_such_package.part") == 2
    said = capsys.readouterr().err
    assert not missing(said, "program: ", "no_such_package", "./install.sh --repair")
    assert said.count("\n") == 1


def test_an_interrupt_while_a_program_is_imported_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "slow_program.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert start("slow_program", "main") == 130
    assert capsys.readouterr().err.count("\n") == 1


def test_faults_of_the_program_are_not_hidden(capsys):
    for fault in (ValueError, RuntimeError, KeyError):
        with pytest.raises(fault):
            failing(fault(), capsys)
    with pytest.raises(ModuleNotFoundError):
        importing("json.no_such_part")


IN_GBK = "/data/\udcb1\udced.jsonl"  # what Python makes of a name in GBK where the locale is UTF-8


@pytest.mark.parametrize(
    ("name", "told"),
    [(IN_GBK, (r"/data/\xb1\xed.jsonl", "UTF-8", "rename")), ("", ("it is empty", "variable"))],
)
@pytest.mark.parametrize(("program", "words"), cases_of(__file__, "commands_with_a_file"))
def test_a_name_that_cannot_be_is_refused_before_any_work(program, words, name, told, capsys):
    """All was played, or prepared, and then no file could hold the name: a traceback, no result."""
    module = importlib.import_module(program)
    run = module.main_of_any if program == "training.start.command" else module.main
    with pytest.raises(SystemExit) as ended:
        run([word.replace("FILE", name) for word in words])
    assert ended.value.code == 2
    assert not missing(capsys.readouterr().err, *told)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", f"sqlite:///{IN_GBK}"),
        ("REWARD_SCALE", IN_GBK),
        ("AGL_TOKEN", " "),
        ("EPISODE_TIMEOUT", "inf"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_name(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    load_settings.cache_clear()
    with pytest.raises(SettingsError, match=f"^{name}"):
        load_settings(DatabaseSettings)


WORK = """
from common import terminal
terminal.QUICK_SECONDS = 0.0
terminal.SECONDS_A_LINE = 0.0
for row in terminal.watched(range(40), "rows of it", "rows"):
    pass
print("done")
"""


@pytest.mark.system
def test_without_one_standard_output_is_what_the_program_says():
    done = python("-c", WORK, check=True)
    assert done.stdout == "done\n"
    assert "40/40" in done.stderr


@given(st.text())
def test_what_is_printed_is_seen(text):
    shown = printable(text)
    assert len(shown) == len(text)
    kinds = {unicodedata.category(char) for char in shown if char not in "\n\t"}
    assert not kinds & {"Cc", "Cf", "Cs", "Co"}
    assert printable(shown) == shown
    shown.encode()
