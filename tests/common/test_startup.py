"""Text files are UTF-8 whatever the locale, and nothing that is printed ends a program."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpora import cases_of

# What a library does that reads a model's files, and a child of this process
PROGRAM = """
import subprocess, sys
from common.command import run_command

def body():
    text = open(sys.argv[1]).read()
    print(text)
    print(text, file=sys.stderr)
    reads = "import sys; print(ascii(open(sys.argv[1]).read()))"
    print(subprocess.run([sys.executable, "-c", reads, sys.argv[1]], check=True, capture_output=True, text=True).stdout)

sys.exit(run_command("program", body))
"""


@pytest.fixture(scope="module", params=["zh_CN.GBK", "en_US.ISO-8859-1"])
def locale_of(request, tmp_path_factory):
    """The variables of a locale with another encoding than UTF-8, and the encoding."""
    folder = tmp_path_factory.mktemp("locale")
    name = str(request.param)
    language, encoding = name.split(".")
    try:
        command = ["localedef", "-i", language, "-f", encoding, str(folder / name)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs localedef and the package locales")
    return {**os.environ, "LOCPATH": str(folder), "LC_ALL": name, "LANG": name}, encoding


@pytest.mark.system
def test_files_are_utf_8_in_another_locale_and_a_terminal_has_its_own(locale_of, tmp_path):
    environment, encoding = locale_of
    file = Path(tmp_path / "template.jinja")
    file.write_text("头痛 ☺", encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    said = done.stderr.decode(encoding)
    assert done.returncode == 0, said
    shown = done.stdout.decode(encoding)
    if encoding == "GBK":
        assert "头痛" in shown
    assert "\\u263a" in shown
    assert "\\u5934\\u75db" in shown, "a child reads UTF-8, too"


@pytest.mark.system
@pytest.mark.parametrize(
    "command", cases_of(__file__, "other_locales"), ids=lambda command: command[1]
)
@pytest.mark.parametrize("locale_of", ["zh_CN.GBK"], indirect=True)
def test_programs_run_in_another_locale(command, locale_of, tmp_path):
    environment, encoding = locale_of
    out = ("--out", str(tmp_path / "out")) if "--n" in command else ()
    done = subprocess.run(
        [sys.executable, *command, *out], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(encoding)
    done.stdout.decode(encoding)
