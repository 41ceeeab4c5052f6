"""env_template and docs/settings.md name every setting, no other, and show the defaults the program
uses.
"""

import re
from pathlib import Path

import pytest

from common.settings import ROOT
from episodes import registry
from episodes.joint import JOINED
from training.start.arguments import KEYS, PLACES

Settings = registry.get(JOINED.join(registry.names())).settings  # with every agent's own
NAMES = sorted(name.upper() for name in Settings.model_fields)
TEMPLATE = ROOT / "env_template"


def template_lines() -> list[str]:
    return TEMPLATE.read_text(encoding="utf-8").splitlines()


def test_env_template_lists_every_setting_once() -> None:
    listed = [line.split("=")[0] for line in template_lines() if re.match(r"[A-Z_]+=", line)]
    assert sorted(listed) == NAMES


def test_a_copied_template_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert Settings(_env_file=TEMPLATE) == Settings(_env_file=None)


def test_the_settings_table_lists_every_setting_once() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    table = page.split("## Which judge")[0]
    assert sorted(re.findall(r"^\| `([A-Z_]+)`", table, flags=re.MULTILINE)) == NAMES


def test_the_settings_table_shows_the_defaults() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `([A-Z_]+)` \| `([^`]+)` \|", page, flags=re.MULTILINE))
    defaults = {name.upper(): field.default for name, field in Settings.model_fields.items()}
    del shown["LLM_PROXY_PUBLIC_HOST"]  # its default is another setting
    assert len(shown) >= 8
    assert {name: plain(value) for name, value in shown.items()} == {
        name: plain(defaults[name]) for name in shown
    }


def test_the_keys_of_steps_batch_and_learning_rate_have_the_defaults_of_the_presets() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for key in KEYS:
        [shown] = re.findall(rf"^\| `{key}`[^|]*\| (.*) \|$", page, flags=re.MULTILINE)
        assert shown.split(" | ") == [str(place.get(key, "not set")) for place in PLACES], key


def test_a_relative_path_starts_at_the_repository_where_the_table_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    told = r"^\| `([A-Z_]+)` \|.*a relative path starts at the repository root"
    names = re.findall(told, page, flags=re.MULTILINE)
    assert "REWARD_SCALE" in names
    monkeypatch.chdir(tmp_path)
    for name in names:
        monkeypatch.setenv(name, "outputs/own")
        assert getattr(Settings(_env_file=None), name.lower()) == ROOT / "outputs" / "own", name


def plain(value: object) -> object:
    """300 and 300.0 are the same default, and so are True and 1."""
    try:
        return float(str(int(value) if isinstance(value, bool) else value))
    except ValueError:
        return str(value)
