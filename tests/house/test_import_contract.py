"""The import contract has every agent, and what it cannot say of the rooms; `./check.sh imports` asks it."""

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter

import grimp
import pytest

from common.settings import ROOT, Settings
from episodes import registry

pytestmark = pytest.mark.system

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACT = PROJECT["tool"]["importlinter"]
LAYERS = "A room imports only rooms below it, and none beside it"


def test_every_agent_is_under_the_contract():
    agents = {path.name for path in ROOT.glob("*_agent")}
    [layers] = [one["layers"] for one in CONTRACT["contracts"] if one["name"] == LAYERS]
    assert agents <= set(CONTRACT["root_packages"])
    assert agents <= {*" | ".join(layers).split(" | ")}


def test_rooms_below_the_agents_know_none_by_name():
    """Without words that are English or litellm's, too. Docstrings may give an example."""
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


def test_no_file_imports_itself_by_way_of_others():
    """Imports inside functions count, and so do those for types alone."""
    graph = grimp.build_graph(*CONTRACT["root_packages"], cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imported) > 300
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the files
