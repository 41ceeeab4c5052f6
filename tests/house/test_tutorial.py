"""The tutorial says what happens: its commands run on its own table and print what it shows."""

import re
import runpy
import shlex
import subprocess
import sys

import pytest

from common.settings import ROOT, load_settings
from episodes import registry
from evaluation import evaluate, serve
from training.start.arguments import parse

PAGES = ("tutorial.md", "tutorial.zh-CN.md")
SHOWN = re.compile(r"```sh\n(.*?)\n```(?:\n\n```text\n(.*?)\n```)?", re.DOTALL)
WITHOUT_ENGINE = ("data.import_database", "data.build_dataset", "evaluation.evaluate")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def blocks(name: str) -> list[tuple[str, str]]:
    """Return the commands of the page, each with what it is shown to print."""
    return SHOWN.findall(page(name))


def words_of(command: str) -> list[str]:
    """Return the words behind the interpreter."""
    return shlex.split(command.replace("$DATABASE_URL", "sqlite:///my/drugs.db"))[1:]


def table_in(name: str) -> str:
    found = re.search(r"```csv\n(.*?)```", page(name), re.DOTALL)
    assert found
    return found[1]


def test_both_languages_have_the_same_table_commands_and_outputs():
    english, chinese = PAGES
    assert blocks(english) == blocks(chinese)
    assert table_in(english) == table_in(chinese)


@pytest.mark.system
def test_every_output_is_what_the_command_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "drugs.csv").write_text(table_in(PAGES[0]), encoding="utf-8")
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/my/drugs.db")
    load_settings.cache_clear()
    ran = []
    for command, output in blocks(PAGES[0]):
        words = words_of(command)
        if words[:1] != ["-m"] or words[1] not in WITHOUT_ENGINE or "--model" in words:
            continue
        monkeypatch.setattr(sys, "argv", words[1:])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(words[1], run_name="__main__")
        assert ended.value.code == 0
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        for line in output.splitlines():
            assert any(said.startswith(line) for said in printed), (line, printed)
        ran.append(words[1])
    load_settings.cache_clear()
    assert set(ran) == set(WITHOUT_ENGINE)


def test_nothing_of_a_hospital_is_one_git_add_away(tmp_path):
    places = ["my/drugs.csv", "my/data/train.parquet", "药品.xlsx", "chats.json", "data/own.db"]
    (tmp_path / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    added = subprocess.run(["git", "ls-files"], cwd=tmp_path, capture_output=True, text=True)
    assert added.stdout.split() == [".gitignore"]


def test_commands_that_need_the_engine_have_arguments_that_exist():
    lines = [line for command, _ in blocks(PAGES[0]) for line in command.splitlines()]
    commands = [words_of(line) for line in lines if line.startswith(".venv")]
    asked = []
    for words in commands:
        if words[0] == "train_sql_agent.py":
            asked.append(parse(registry.get("sql"), words[1:]).run_dir)
        elif "--model" in words:
            asked.append(evaluate.parse_arguments(words[2:], load_settings())[1].out)
        elif words[1] == "evaluation.serve":
            asked.append(serve.parse_arguments(words[2:], load_settings())[0].name)
    small = ["my/before", "runs/mine", "my/after", "sql"]
    assert [str(one) for one in asked] == [*small, "my/warm", "my/trained"]
