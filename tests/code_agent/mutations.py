"""Wrong programs near a right one: one change each, of an operator, a constant, a column, a
function, a step.

for program in mutations_of(task.program, Random(1)): ...
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from random import Random

from data.ehr.hospital import COLUMNS, column_names

OTHER_OPERATOR: dict[type, list[type]] = {
    ast.Eq: [ast.NotEq], ast.GtE: [ast.Gt, ast.Lt], ast.Gt: [ast.GtE, ast.Lt], ast.LtE: [ast.Lt, ast.Gt],
    ast.Lt: [ast.LtE, ast.Gt], ast.Add: [ast.Sub, ast.Mult], ast.Sub: [ast.Add, ast.Mult], ast.Mult: [ast.Div, ast.Add],
    ast.Div: [ast.Mult, ast.Sub], ast.Pow: [ast.Mult], ast.BitAnd: [ast.BitOr],
}  # fmt: skip
OTHER_NAME = {
    "max": ["min", "sum", "mean", "tolist"], "min": ["max", "count", "tolist"], "sum": ["mean", "max", "tolist"],
    "mean": ["median", "max", "sum", "tolist"], "nunique": ["count", "sum", "unique"], "any": ["all", "sum"],
    "size": ["count", "max"], "sorted": ["len", "str", "max"], "set": ["len"], "startswith": ["endswith", "contains"],
    "item": ["count", "to_dict"], "to_dict": ["max", "tolist", "count"], "tolist": ["max", "sum", "count"],
    "isin": ["ne"], "sqrt": ["exp", "log"], "log": ["log10", "exp"], "round": ["str", "float"],
}  # fmt: skip
COLUMN = {name for table in COLUMNS for name in column_names(table)}
SHOWN = "{0}, {0}", "[{0}, 0]", "'it is', {0}", "repr({0})[:-1]", "[{0}] * 2", "{0}, end=' nan'"


def mutations_of(program: str, random: Random) -> Iterator[str]:
    """Each program that one change makes of this one, without repeats."""
    tree, seen = ast.parse(program), {program}
    for number, node in enumerate(ast.walk(tree)):
        for change in range(len(list(_changes(node, random)))):
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[number]
            _apply(list(_changes(target, random))[change])
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text not in seen:
                seen.add(text)
                yield text
    yield from _without_a_step(program)
    yield from _shown_otherwise(program)


def _apply(change: tuple[ast.AST, str, object]) -> None:
    setattr(*change)


def _changes(node: ast.AST, random: Random) -> Iterator[tuple[ast.AST, str, object]]:
    """What to set of a node, one at a time."""
    match node:
        case ast.Compare(ops=[operator]):
            yield from (
                (node, "ops", [other()]) for other in OTHER_OPERATOR.get(type(operator), [])
            )
        case ast.BinOp(op=operator):
            yield from ((node, "op", other()) for other in OTHER_OPERATOR.get(type(operator), []))
        case ast.Attribute(attr=name):
            yield from ((node, "attr", other) for other in OTHER_NAME.get(name, _columns(name)))
        case ast.Name(id=name):
            yield from ((node, "id", other) for other in OTHER_NAME.get(name, []))
        case ast.Constant(value=bool() as value):
            yield node, "value", not value
        case ast.Constant(value=int() | float() as value):
            yield from (
                (node, "value", other) for other in (value + 1, value - 1, value * 2, -value)
            )
        case ast.Constant(value=str() as value) if not value.startswith("/"):
            yield from ((node, "value", other) for other in _columns(value) or [_next(value)])


def _columns(name: str) -> list[str]:
    """Columns beside one of that name, in the first table that has it."""
    tables = [column_names(table) for table in COLUMNS if name in column_names(table)]
    return [other for other in tables[-1] if other != name][:4] if tables else []


def _next(text: str) -> str:
    """Another year, or a name that is in no table."""
    return str(int(text) + 1) if re.fullmatch(r"\d{4}", text) else f"{text}s"


def _without_a_step(program: str) -> Iterator[str]:
    """Without one of the lines that filter."""
    lines = program.splitlines()
    for at, line in enumerate(lines):
        if re.match(r"\w = \w\[", line):
            yield "\n".join(lines[:at] + lines[at + 1 :])


def _shown_otherwise(program: str) -> Iterator[str]:
    """The value with more beside it, twice, or cut; and the whole table it was found in."""
    before, _, printed = program.rpartition("print(")
    yield from (f"{before}print({form.format(printed.removesuffix(')'))})" for form in SHOWN)
    yield from (
        f"{before}print({name})"
        for name in sorted(set(re.findall(r"^(\w) = pd", program, re.MULTILINE)))
    )
