"""What READMEs, pages and env_template name exists, and both languages say the same."""

import os
import re
from pathlib import Path

import pytest

from common.settings import ROOT
from episodes import registry
from episodes.joint import JOINED
from tests.programs import ran
from training.setup.presets import VERL_DEFAULTS
from training.start.arguments import KEYS

READMES = ("README.md", "README.zh-CN.md")
PAGES = [
    *READMES,
    "CONTRIBUTING.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code(page: str) -> list[str]:
    """Contents of code fences without a language, then those of inline code."""
    blocks, prose = [], []
    for number, part in enumerate(re.split(r"^```", page, flags=re.MULTILINE)):
        (blocks if number % 2 else prose).append(part)
    return [block[1:] for block in blocks if block.startswith("\n")] + re.findall(
        r"`([^`\n]+)`", "".join(prose)
    )


def commands(name: str) -> list[str]:
    start = ("make ", "./", ".venv/", "python ")
    return [
        line.strip()
        for block in code(text(name))
        for line in block.splitlines()
        if line.strip().startswith(start)
    ]


def test_both_readmes_give_the_same_commands():
    english, chinese = (commands(name) for name in READMES)
    assert english
    assert english == chinese


@pytest.mark.parametrize("page", PAGES)
def test_programs_and_make_targets_named_exist(page):
    targets = re.findall(r"^([a-z-]+):", text("Makefile"), flags=re.MULTILINE)
    for command in commands(page):
        assert not command.startswith("make ") or command.split()[1] in targets, command
        for word in re.findall(r"(?:^|&& )(\./\S+)", command):
            assert os.access(ROOT / word, os.X_OK), f"{page}: {word} is not an executable file"
        for script in re.findall(r"python (\S+\.py)", command):
            assert (ROOT / script).is_file(), f"{page}: {script}"
        for module in re.findall(r"python -m ([a-z_]+\.[a-z_.]+)", command):
            path = ROOT / module.replace(".", "/")
            runs = path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
            assert runs, f"{page}: {module}"
        for agent in re.findall(
            r"python -m (?:evaluation\.(?:evaluate|demo|play)|training\.cold_start) (\S+)", command
        ):
            known = [*registry.names(), "<name>", "AGENT"]
            several = {*agent.split(JOINED)} <= {*registry.names()}
            written_here = f"episodes.new {agent}" in text(page)
            assert agent in known or several or written_here, f"{page}: {command} names no agent"


def test_commands_have_one_form():
    """`python` alone is the system's, which has none of the packages."""
    bare = re.compile(r"(?<![\w/.~-])python (?:-m (?!venv)|train_|utils/|sql_agent/|code_agent/)")
    kinds = ["*.py", "*.md", "*.toml", "*.txt", "*.sh", "env_template"]
    elsewhere = [":!tests", ":!requirements", ":!CHANGELOG.md"]
    listed = ran("git", "ls-files", *kinds, *elsewhere, check=True)
    assert [name for name in listed.stdout.split() if bare.search(text(name))] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{page}: {target}"


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages_named_by_programs_exist():
    listed = ran("git", "ls-files", "*.py", "*.toml", "*.sh", ":!tests", check=True)
    for name in listed.stdout.split():
        for page in re.findall(r"\bdocs/[\w.-]+\.md", text(name)):
            assert (ROOT / page).is_file(), f"{name}: {page}"


def test_the_index_leads_to_every_page():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    pages = {name for name in pages if not name.endswith(".zh-CN.md")}
    assert {*re.findall(r"\]\(([a-z-]+\.md)\)", text("docs/README.md"))} == pages


def test_the_tree_of_the_readme_names_what_exists():
    for name in READMES:
        tree = next(block for block in code(text(name)) if "_agent.py  " in block)
        for line in tree.splitlines():
            assert (ROOT / line.split()[0]).exists(), f"{name}: {line}"


Settings = registry.get(JOINED.join(registry.names())).settings  # with every agent's own
NAMES = sorted(name.upper() for name in Settings.model_fields)


def test_env_template_lists_every_setting_once_and_changes_none(monkeypatch):
    assert sorted(re.findall(r"^([A-Z_]+)=", text("env_template"), flags=re.MULTILINE)) == NAMES
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert Settings(_env_file=ROOT / "env_template") == Settings(_env_file=None)


def test_the_settings_table_lists_every_setting_once_with_its_default():
    page = text("docs/settings.md")
    table = page.split("## Only from")[0]
    assert sorted(re.findall(r"^\| `([A-Z_]+)`", table, flags=re.MULTILINE)) == NAMES
    shown = dict(re.findall(r"^\| `([A-Z_]+)` \| `([^`]+)` \|", page, flags=re.MULTILINE))
    defaults = {name.upper(): field.default for name, field in Settings.model_fields.items()}
    del shown["LLM_PROXY_PUBLIC_HOST"]  # its default is another setting
    assert len(shown) >= 8
    assert [name for name in shown if plain(shown[name]) != plain(defaults[name])] == []


def test_the_keys_of_steps_batch_and_learning_rate_have_the_defaults_of_the_presets():
    page = text("docs/settings.md")
    preset = VERL_DEFAULTS["preset"]
    places = (
        preset["every"] | preset["cpu"],
        preset["every"] | preset["cpu"] | preset["large"],
        preset["every"] | preset["cuda"] | VERL_DEFAULTS["gpus"]["1"],
    )
    for key in KEYS:
        [shown] = re.findall(rf"^\| `{key}`[^|]*\| (.*) \|$", page, flags=re.MULTILINE)
        assert shown.split(" | ") == [str(place.get(key, "not set")) for place in places], key


def plain(value: object) -> object:
    """300 and 300.0 are the same default, and so are True and 1."""
    try:
        return float(str(int(value) if isinstance(value, bool) else value))
    except ValueError:
        return str(value)
