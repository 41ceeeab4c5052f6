"""Statements for the guard to survive: known ones taken apart and put together wrongly, and words
in any order.

A draw takes some microseconds, so that millions of them are asked for in an hour.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

from sqlglot.dialects.dialect import Dialect

PIECES = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|\w+|\s+|<=|>=|<>|\|\||->>?|::|.""", re.DOTALL)
HABITS = r"""
( ) [ ] { } , ; . * + - / % = < > <> <= >= || -> ->> :: := @ # ? :p $1 $a$ ' " ` \ -- /* */ ~ ^ & | !
1 0 1.5 1e1 1e2-3e1 0x1F x'' b'' n'' e'' x'0g' 'a' '' '药' NULL id med_name cause disease drugs_info secrets t
"""
LONGEST = 60  # pieces


def statements() -> list[list[str]]:
    """The corpus, in pieces."""
    files = (Path(__file__).parent / "corpus").glob("*.txt")
    lines = "".join(file.read_text(encoding="utf-8") for file in files)
    found = [line.partition("] ")[2] for line in lines.splitlines() if line.startswith("[")]
    return [PIECES.findall(line)[:LONGEST] for line in found]


def draw(dialect: str, seed: int) -> Iterator[str]:
    """Statements without end."""
    random, known = Random(f"{dialect} {seed}"), statements()
    spoken = Dialect.get_or_raise(dialect)
    parser = spoken.parser_class
    words = [*HABITS.split(), *spoken.tokenizer_class.KEYWORDS, *parser.FUNCTIONS]
    words += [f"{name}(" for name in [*parser.FUNCTION_PARSERS, *parser.NO_PAREN_FUNCTION_PARSERS]]
    while True:
        pieces = list(random.choice(known)) if random.random() < 0.8 else ["SELECT", " "]
        for _ in range(random.choice((1, 1, 2, 3, 8, 20))):
            _change(pieces, random, words, known)
        yield "".join(pieces)


def _change(pieces: list[str], random: Random, words: list[str], known: list[list[str]]) -> None:
    """Put one thing in, take one away, or take one from another statement."""
    at = random.randrange(len(pieces) + 1)
    kind = random.random()
    if kind < 0.5:
        pieces[at:at] = [random.choice(words), random.choice((" ", " ", ""))]
    elif kind < 0.7:
        pieces[at : at + random.choice((1, 1, 3))] = []
    elif kind < 0.9:
        other = random.choice(known)
        start = random.randrange(len(other) + 1)
        pieces[at:at] = other[start : start + random.choice((2, 5, 12))]
    else:
        pieces[at:at] = pieces[at : at + 3] * random.choice((2, 4, 30))
