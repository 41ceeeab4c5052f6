"""What the READMEs and pages tell people to type and to open exists, and both languages say the
same.
"""

import ast
import json
import os
import re
from pathlib import Path

import pytest

from bench.performance import read_figures
from common.settings import ROOT
from episodes import registry
from episodes.joint import JOINED
from evaluation.published import cells, read_rows

ROOMS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and any(path.glob("*.py")))
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


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", text("Makefile"), flags=re.MULTILINE))


def test_both_readmes_give_the_same_commands() -> None:
    english, chinese = (commands(name) for name in READMES)
    assert english
    assert english == chinese


def test_both_readmes_give_the_same_numbers() -> None:
    english, chinese = (
        re.findall(r"\d+(?:\.\d+)*", text(name).replace("README.zh-CN", "")) for name in READMES
    )
    assert english == chinese


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_named_exist(page: str) -> None:
    named = {line.split()[1] for line in commands(page) if line.startswith("make ")}
    assert named <= make_targets()


@pytest.mark.parametrize("page", PAGES)
def test_programs_named_exist(page: str) -> None:
    for command in commands(page):
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
            known = [*registry.names(), "<name>", "AGENT", "--collect"]
            several = {*agent.split(JOINED)} <= {*registry.names()}
            written_here = f"episodes.new {agent}" in text(page)
            assert agent in known or several or written_here, f"{page}: {command} names no agent"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
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


def test_the_tests_named_by_the_page_of_tests_exist() -> None:
    """A promise whose test was renamed or taken out is a promise without one."""
    named = re.findall(r"`((?:\w+/)+test_\w+\.py)?(?:::(test_\w+))?`", text("docs/testing.md"))
    file, seen = "", 0
    for path, test in named:
        file = path or file
        if test:
            seen += 1
            source = text(f"tests/{file}")
            if file.startswith("conformance/"):
                source += text("episodes/conformance_checks.py")
            assert f"def {test}(" in source, f"{file}::{test}"
    assert seen > 40


def test_the_index_leads_to_every_page() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    pages = {name for name in pages if not name.endswith(".zh-CN.md")}
    assert {*re.findall(r"\]\(([a-z-]+\.md)\)", text("docs/README.md"))} == pages


@pytest.mark.parametrize("name", READMES)
def test_the_readme_is_short(name: str) -> None:
    assert len(text(name).splitlines()) <= 110


def test_the_ci_runs_the_readme_test_command() -> None:
    assert text(".ci/run").rstrip().splitlines()[-1].startswith("make test")
    assert "./check.sh" in text("Makefile").split("\ntest:")[1].split("\n\n")[0]


def test_the_tree_of_the_readme_names_what_exists() -> None:
    for name in READMES:
        tree = next(block for block in code(text(name)) if "_agent.py  " in block)
        for line in tree.splitlines():
            assert (ROOT / line.split()[0]).exists(), f"{name}: {line}"


@pytest.mark.parametrize("name", READMES)
def test_the_readme_says_what_the_demos_gave(name: str) -> None:
    """`docs/results.json` is written by `python -m evaluation.published`."""
    rows = read_rows()
    agents = {row["agent"] for row in rows}
    assert agents == set(registry.names()) & {"sql", "consultation", "diagnosis", "code"}
    for agent in agents:
        said = " | ".join(cells([row for row in rows if row["agent"] == agent]))
        assert f"| {said} |" in text(name), f"{name}: {agent}: expected | {said} |"


@pytest.mark.parametrize("name", READMES)
def test_the_readme_says_what_the_example_report_shows(name: str) -> None:
    """The picture in the README is the first screen of docs/example-report.html."""
    page = text("docs/example-report.html")
    cards, _ = json.JSONDecoder().raw_decode(page.split('"results":', 1)[1])
    measures = [(card["before"], card["after"], card["unit"]) for card in cards]
    formats = {"points of 100": ".1f", "reward": ".3f"}
    wanted = [format(one, formats[unit]) for *both, unit in measures for one in both]
    alt = re.findall(r"^!\[(.+)\]\(docs/report.png\)", text(name), flags=re.MULTILINE)
    assert re.findall(r"\d+\.\d+", alt[0]) == wanted


@pytest.mark.parametrize(
    ("name", "seconds", "memory"),
    [
        (
            "README.md",
            "a fresh clone takes {0} to {1} s, an installed one {2} to {3} s",
            "{} GiB of memory",
        ),
        (
            "README.zh-CN.md",
            "全新克隆用时 {0} 到 {1} s，已装好依赖时 {2} 到 {3} s",
            "内存占用 {} GiB",
        ),
    ],
)
def test_the_readme_says_what_make_train_cost(name: str, seconds: str, memory: str) -> None:
    """`docs/performance.json` has the measurements."""
    cost = read_figures()["make_train"]
    assert seconds.format(*cost["fresh_clone_s"], *cost["installed_s"]) in text(name)
    assert memory.format(cost["peak_memory_gib"]) in text(name)


def test_a_run_starts_by_the_files_that_the_page_lists() -> None:
    """docs/architecture.md, How a run starts: what `check_and_train` and `start` import."""
    listed = re.findall(r"^\| `(\S+\.py)` \|", section("How a run starts"), flags=re.MULTILINE)
    launch = ast.parse(text("training/launch.py"))
    start = [
        node
        for node in launch.body
        if isinstance(node, ast.FunctionDef) and node.name in ("check_and_train", "start")
    ]
    imported = [
        f"{node.module.replace('.', '/')}.py"
        for function in start
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and node.module
    ]
    assert len(start) == 2
    assert sorted({*imported, "training/launch.py"}) == sorted(listed)
    assert len(listed) + 1 <= 10  # the agent's own file stands there without a path


def test_a_row_has_at_most_twelve_forms_and_their_files_are_there() -> None:
    forms = section("How a step runs").split("from its file to the gradient:")[1].split("\n\n")[1]
    rows = forms.splitlines()[2:]
    assert 0 < len(rows) <= 12
    files = re.findall(r"`((?:training|episodes)/\S+\.py)`", forms)
    assert [file for file in files if not (ROOT / file).is_file()] == []


def section(title: str) -> str:
    """Return a section of docs/architecture.md."""
    return text("docs/architecture.md").split(f"\n## {title}\n")[1].split("\n## ")[0]
