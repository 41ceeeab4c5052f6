"""What people read on a terminal is Chinese where the locale is, and says the same as the English."""

import ast
import string
import subprocess

import pytest

from common.language import CHINESE, is_chinese, said
from common.settings import ROOT
from tests.corpora import cases_of


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def texts_of_the_code() -> tuple[set[str], set[str]]:
    """All texts of the rooms, and those given to `said` where they are used."""
    texts = set()
    given = set()
    listed = subprocess.check_output(["git", "ls-files", "*.py"], cwd=ROOT, text=True)
    for name in listed.split():
        if name.startswith(("common/", "evaluation/", "training/", "sql_agent/", "recipes/")):
            for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.add(node.value)
                called = node.func if isinstance(node, ast.Call) else None
                if isinstance(called, ast.Name) and called.id == "said":
                    first = node.args[0]
                    if isinstance(first, ast.Constant):
                        given.add(str(first.value))
    return texts, given


def test_every_text_has_a_chinese_one_with_the_same_fields():
    texts, given = texts_of_the_code()
    assert given - CHINESE.keys() == set()
    assert CHINESE.keys() - texts == set()
    assert [text for text in CHINESE if fields(text) != fields(CHINESE[text])] == []


@pytest.mark.parametrize(("locale", "chinese"), cases_of(__file__, "locales"))
def test_the_locale_decides(locale, chinese, monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in locale.items():
        monkeypatch.setenv(name, value)
    assert is_chinese() == chinese
    assert ("奖励" in said("reward {value}", value=1)) == chinese
