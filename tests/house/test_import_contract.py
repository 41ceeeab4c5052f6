"""The import contract breaks when a room imports what it must not: every rule is really broken, all
in one run.

A copy of the rooms gets one new module per violation; lint-imports must name each of them under the
rule it breaks. That the contract holds as it is says `./check.sh imports`, which runs before the
tests.
"""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from common.settings import ROOT, Settings
from episodes import registry

pytestmark = pytest.mark.system

CONTRACT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]
LAYERS = "A room imports only rooms below it, and none beside it"
NO_TOOLS = "Episodes, training and evaluation know no tool and no data"
SERVES = "Rooms above training take what serves a model, and what a command checks before it starts"
ENGINE = "Only training imports the engine"
VIOLATIONS = [
    (LAYERS, "common", "data.files"),
    (LAYERS, "tools.sql", "scoring.judge"),
    (LAYERS, "sql_agent", "recipes.fictional"),
    (LAYERS, "training", "sql_agent.task"),
    (LAYERS, "consultation_agent", "sql_agent.task"),
    (NO_TOOLS, "episodes", "tools.sql.query"),
    (NO_TOOLS, "evaluation", "data.files"),
    ("Training does not score", "training", "scoring.judge"),
    (SERVES, "sql_agent", "training.setup.plan"),
    ("Of the rooms, nobody imports evaluation", "sql_agent", "evaluation.metrics"),
    ("Only episodes.tool_loop and episodes.mcp_tools import openai-agents", "sql_agent", "agents"),
    (
        "Outside training, only episodes.lit_agent imports agent-lightning",
        "sql_agent",
        "agentlightning",
    ),
    ("Only common.terminal imports tqdm", "training", "tqdm"),
    (ENGINE, "sql_agent", "torch"),
    (ENGINE, "evaluation", "verl"),
    ("Nothing imports a script", "utils", "utils.filter_again"),
    ("Nothing imports a script", "evaluation", "evaluation.demo"),
]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What lint-imports prints under each contract it found broken."""
    folder = tmp_path_factory.mktemp("rooms")
    for room in CONTRACT["root_packages"]:
        shutil.copytree(
            ROOT / room,
            folder / room,
            ignore=lambda at, names: [n for n in names if is_data(at, n)],
        )
    shutil.copy(ROOT / "pyproject.toml", folder)
    for number, (_, package, target) in enumerate(VIOLATIONS):
        late = number % 2  # an import inside a function counts as well
        line = f"def late():\n    import {target}\n" if late else f"import {target}\n"
        (folder / package.replace(".", "/") / f"violation_{number}.py").write_text(line)
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout
    report = re.sub(r"\x1b\[\d+m", "", done.stdout)  # it colours even a pipe
    heads = re.split(r"^(.+)\n-+\n", report, flags=re.MULTILINE)
    return dict(zip(heads[1::2], heads[2::2], strict=True))


def is_data(folder: str, name: str) -> bool:
    return Path(folder, name).is_file() and not name.endswith(".py")


@pytest.mark.parametrize(
    "number", range(len(VIOLATIONS)), ids=[f"{where}-{what}" for _, where, what in VIOLATIONS]
)
def test_a_violation_breaks_its_rule(broken: dict[str, str], number: int) -> None:
    rule, package, target = VIOLATIONS[number]
    assert f"- {package}.violation_{number} -> {target} " in re.sub(r" +", " ", broken[rule])


def test_every_rule_is_broken_by_some_violation() -> None:
    assert {rule for rule, _, _ in VIOLATIONS} == {
        contract["name"] for contract in CONTRACT["contracts"]
    }


def test_every_agent_is_under_the_contract() -> None:
    agents = {path.name for path in ROOT.glob("*_agent")}
    [layers] = [
        contract["layers"] for contract in CONTRACT["contracts"] if contract["name"] == LAYERS
    ]
    assert agents <= set(CONTRACT["root_packages"])
    assert agents <= {name for layer in layers for name in layer.split(" | ")}


def test_rooms_below_the_agents_know_none_by_name() -> None:
    """The words are their folders, names and settings, without words of English and what litellm
    reads too. Docstrings may give an example.
    """
    folders = [path.name for path in ROOT.glob("*_agent")]
    names = [name.removesuffix("_agent") for name in folders]
    kinds = [registry.get(name).settings for name in names]
    own = {name for kind in kinds for name in kind.model_fields} - {*Settings.model_fields}
    shared = {"code", "sandbox", "DATABASE_URL"}
    words = "|".join({*folders, *names, *own, *map(str.upper, own)} - shared)
    named = re.compile(rf"(?<![a-z])({words})(?![a-z])")
    found = []
    for room in ("common", "episodes", "training", "evaluation"):
        for path in sorted((ROOT / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            said = {id(text) for text in docstrings(tree)}
            for node in ast.walk(tree):
                word = str(getattr(node, "value" if id(node) not in said else "", ""))
                word += f" {getattr(node, 'id', '')} {getattr(node, 'attr', '')}"
                if isinstance(node, ast.Constant | ast.Name | ast.Attribute) and named.search(word):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {word.strip()}")
    assert found == []


def docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the texts that stand alone as a statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Imports inside functions count, and so do those for types alone."""
    graph = grimp.build_graph(*CONTRACT["root_packages"], cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imported) > 300
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the files
