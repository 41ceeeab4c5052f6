"""Every stop reason and every cause that the code uses stands in the one list, and the page shows
the list.

Keeps of docs/evaluation.md, "How episodes end": both tables are the code's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain

import pytest

from common.settings import ROOT
from episodes.outcomes import STOP_REASONS, UNSCORED, EpisodeError

ROOMS = (
    "episodes",
    "scoring",
    "training",
    "evaluation",
    *sorted(path.name for path in ROOT.glob("*_agent")),
)
KINDS = {"stop_reason": "stop", "PolicyStop": "stop", "cause": "unscored", "unscored": "unscored"}
KINDS |= {"EpisodeError": "unscored", "Reward": "unscored"}
LISTS = {"stop": STOP_REASONS, "unscored": UNSCORED}
ENDS_OF_ROLLOUTS = (
    "failed",
    "cancelled",
    "timeout",
    "unresponsive",
)  # agent-lightning's, for `rollout_{status}`


def constants(node: ast.AST | None) -> Iterator[str]:
    """The texts an expression may be: constants, also those of a condition, a table and a look-up's
    default.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from chain(constants(node.body), constants(node.orelse))
    elif isinstance(node, ast.Dict):
        yield from chain.from_iterable(map(constants, node.values))
    elif isinstance(node, ast.Call) and named(node.func) == "get":
        yield from chain.from_iterable(map(constants, node.args[1:]))


def named(node: ast.AST) -> str:
    return getattr(node, "attr", None) or getattr(node, "id", None) or ""


def used() -> Iterator[tuple[str, str, str]]:
    """Kind, text and file of everything that is given out as a stop reason or as a cause."""
    for path in sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name, value in expressions(node):
                for text in constants(value):
                    yield KINDS[name], text, str(path.relative_to(ROOT))


def expressions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Assign):
        pairs = [(named(target), node.value) for target in node.targets]
        yield from (
            (name, value) for name, value in pairs if name in ("stop_reason", "cause", "unscored")
        )
        yield from (
            ("cause", value)
            for name, value in pairs
            if name.endswith("_MISSING") or name == "CAUSES"
        )
    elif isinstance(node, ast.Call):
        name = named(node.func)
        if name in ("EpisodeError", "PolicyStop"):
            yield name, node.args[0]
        elif name == "Reward" and len(node.args) > 2:
            yield name, node.args[2]
        yield from (
            (word.arg, word.value)
            for word in node.keywords
            if word.arg in ("stop_reason", "cause", "unscored")
        )
    elif isinstance(node, ast.FunctionDef) and node.name == "_cause":
        yield from (
            ("cause", part.value)
            for part in ast.walk(node)
            if isinstance(part, ast.Return) and part.value
        )


def test_what_the_code_uses_stands_in_the_list_and_every_cause_listed_is_used() -> None:
    found = list(used())
    assert len(found) > 20
    assert [entry for entry in found if entry[1] not in LISTS[entry[0]]] == []
    given = {text for kind, text, _ in found if kind == "unscored"}
    assert UNSCORED.keys() == given | {f"rollout_{end}" for end in ENDS_OF_ROLLOUTS}


def test_a_cause_that_is_not_listed_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="'sleepy' is no cause"):
        EpisodeError("sleepy", "x")


def test_the_page_shows_both_lists() -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    section = page.split("## How episodes end")[1].split("\n## ")[0]
    tables = [
        dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", part, flags=re.MULTILINE))
        for part in section.split("| cause |")
    ]
    assert tables == [STOP_REASONS, UNSCORED]
