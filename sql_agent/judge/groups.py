"""Facts that belong together: the lines of a cell, and rows of one name.

groups = Groups([["成人每次2片，一日3次；儿童每次1片，一日2次"]], [])
groups.is_of_another("成人每次2片", "每天2次")       # True: that is what a child takes
"""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence

from sql_agent.judge.fold import fold, pieces
from sql_agent.judge.heads import JOINT

JOINTS = re.compile(JOINT)
# Before the last item: "A, B, and C"
AND_BEFORE = re.compile("^(?:以及|还有|另有|和|and |or )(?=.)")
LINE_ENDS = {"", ";", "。"}  # signs behind the last piece of a line
NUMBERS = re.compile(r"\d[\d.~]*")


def facts_of(text: str) -> list[tuple[list[str], str]]:
    """Return the pieces as facts, with their signs. In an enumeration the last may have several."""
    found = pieces(text)
    is_listed = any(sign == "、" for _, sign in found)
    facts = []
    for piece, sign in found:
        item = AND_BEFORE.sub("", piece)
        parts = [part for part in JOINTS.split(item) if part] if is_listed else []
        whole = len(parts) > 1 and all(len(part) > 1 for part in parts)
        facts.append((parts if whole else [item], sign))
    return facts


class Groups:
    """members: under the first fact of a group the others. roles: of each fact, in its groups.

    parts: under the first fact the roles of its group. An alike group has facts for them, too.
    """

    def __init__(self, rows: Sequence[Sequence[str]], names: Collection[str]) -> None:
        self.members: defaultdict[str, set[str]] = defaultdict(set)
        self.roles: defaultdict[str, set[object]] = defaultdict(set)
        self.parts: defaultdict[str, set[object]] = defaultdict(set)
        for number, row in enumerate(rows):
            owners = frozenset(map(fold, row)).intersection(names)
            first = ""
            for column, cell in enumerate(row):
                found = facts_of(cell)
                self._add_lines(found, number, column)
                if first:
                    for facts, _ in found:
                        self._add(first, facts, (owners, column))
                elif found and fold(cell) not in owners:
                    first = found[0][0][0]

    def is_of_another(self, first: str, fact: str) -> bool:
        """Return whether the fact belongs to a group like that of the first fact, and not to it."""
        shared = self.parts.get(first, set()) & self.roles.get(fact, set())
        return bool(shared) and fact not in self.members[first]

    def heads_numbers(self, fact: str) -> bool:
        """Return whether the rest of the fact's row are numbers, as of 骨科, 82."""
        others = self.members.get(fact, ())
        return fact[0].isalpha() and bool(others) and all(one[0].isdigit() for one in others)

    def _add_lines(self, found: Sequence[tuple[list[str], str]], *cell: int) -> None:
        """Take the lines of a cell, and what follows a colon. Other lines must differ in numbers."""
        first = before = ""
        is_headed = False
        for facts, sign in found:
            forms = [NUMBERS.sub("#", fact) for fact in facts]
            if sign == ":" or before in LINE_ENDS:
                first = facts[0]
                is_headed = sign == ":"
            elif is_headed or forms != facts:
                self._add(first, facts, (*cell, *([] if is_headed else forms)))
            before = sign

    def _add(self, first: str, facts: Sequence[str], role: object) -> None:
        self.members[first].update(facts)
        self.parts[first].add(role)
        for fact in facts:
            self.roles[fact].add(role)
