"""Answers with a known score: bad ones, to see whether a judge can be fooled, and good ones.

A run's judge gets both before the start, and bad ones beside some episodes (CANARY_SHARE).
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from random import Random

from common.toml import table_beside
from scoring.case import Case
from scoring.text import words_only
from sql_agent.judge.fold import fragments
from sql_agent.judge.nothing import abstains
from sql_agent.tables import NAME_COLUMN

RETOLD = 5  # other rows that are retold beside the right one
NUMBER = re.compile(r"\d+(?:\.\d+)?")
MEASURED = re.compile(
    r"\d\s*[a-zA-Z%度克毫微升片粒丸袋支瓶包滴次岁天日周月年小分个]|^\d+(?:\.\d+)?$"
)

_TEXTS = table_beside(__file__)
NOTHING_FOUND: str = _TEXTS["nothing_found"]
DENIED: list[str] = _TEXTS["denied"]


def bad_answers(
    case: Case, names: Sequence[str], column: Callable[[str], Sequence[str]], random: Random
) -> dict[str, str]:
    """Return the bad answers that the question allows, by kind.

    names: known entities of the question. column: a function that gives some values of a column.
    """
    question = case.question.rstrip("？?")
    found = {
        "wrong numbers": _wrong_numbers(case, random),
        "the question again": f"关于“{question}”，{question}的情况如上所述。",
        "words to the judge": random.choice(_TEXTS["to_the_judge"]),
        "praise of itself": random.choice(_TEXTS["praise"]),
    }
    if case.context:
        found["the tool's JSON"] = case.context[-1]
    if not is_nothing(case):
        found["nothing found"] = NOTHING_FOUND
        found |= _near(case, names, column, random)
    return {kind: answer for kind, answer in found.items() if answer}


def _near(
    case: Case, names: Sequence[str], column: Callable[[str], Sequence[str]], random: Random
) -> dict[str, str]:
    """Return wrong answers that resemble the right one."""
    cells = [cell for cell in _gold_cells(case) if cell[1] not in names] or _gold_cells(case)
    evidence = next(iter(honest_answers(case).values()), None)
    if not cells or not evidence:
        return {}
    field, value = random.choice(cells)
    right = words_only(case.reference + "".join(text for _, text in cells))
    others = [text for text in column(field) if any(part not in right for part in fragments(text))]
    strangers = [text for text in others if _is_other(text, right)]
    found = {
        "the same field of another row": random.choice(others or [""]),
        "denied behind": f"{evidence}。{random.choice(DENIED)}",
        "right, with an invention": f"{evidence}。{random.choice(_TEXTS['invented'])}",
    }
    if len(others) >= RETOLD:
        found["the rows retold"] = "。".join([value, *random.sample(others, RETOLD)])
    against = _wrong_numbers(case, random) or random.choice(strangers or [""])
    if against:
        found["right, beside a contradiction"] = f"{evidence}。另有记录为：{against}。"
    if names and all(text != names[0] for _, text in cells):
        found["the name alone"] = names[0]
    if len(names) == 1 and names[0] in case.reference:
        asked = words_only(case.question + case.reference)
        known = chain(*map(column, NAME_COLUMN.values()))
        another = random.choice([name for name in known if _is_other(name, asked)] or [""])
        found["said of another"] = another and case.reference.replace(names[0], another)
    return found


def honest_answers(case: Case) -> dict[str, str]:
    """Return the answers known to be right, by kind: the gold rows or quotes, and the reference."""
    answers = {}
    if not is_nothing(case):
        rows = ((case.gold or {}).get("structured_gt") or {}).get("rows") or []
        lines = ["：".join(str(cell) for cell in row if cell is not None) for row in rows]
        quotes = "\n".join(dict.fromkeys(text for _, text in _gold_cells(case)))
        answers["exact evidence"] = "；".join(lines) or quotes
    answers["reference answer"] = case.reference
    return {kind: answer for kind, answer in answers.items() if answer}


def is_nothing(case: Case) -> bool:
    """Return whether the right answer is that the database has nothing."""
    known = any(words_only(value) for _, value in _gold_cells(case))
    return not known and (abstains(case.reference) or not case.reference)


def _wrong_numbers(case: Case, random: Random) -> str | None:
    """Return only the right answer's measurements, but wrong. Other parts might still be right."""

    def wrong(match: re.Match[str]) -> str:
        return f"{float(match.group()) * random.choice((2, 3, 5)) + 1:g}"

    found = []
    for text in [value for _, value in _gold_cells(case)] or [case.reference]:
        found += [NUMBER.sub(wrong, part) for part in fragments(text) if MEASURED.search(part)]
    return "，".join(found) or None


def _is_other(value: str, right: str) -> bool:
    """Return whether no part of the value is right. Drugs of one maker often share facts."""
    parts = [part for part in fragments(value) if len(part) > 1]
    return bool(parts) and not any(part in right for part in parts)


def _gold_cells(case: Case) -> list[tuple[str, str]]:
    """Return the filled cells with their columns, else the quotes with theirs."""
    gold = case.gold or {}
    table = gold.get("structured_gt") or {"columns": [], "rows": []}
    cells = []
    for row in table["rows"]:
        named = zip(table["columns"], row, strict=True)
        cells += [(name, str(cell)) for name, cell in named if cell is not None]
    return cells or [(str(item.get("field")), item["quote"]) for item in gold.get("evidence") or []]
