"""An answer as the offline judge compares it: in canonical form, as words only, clause by clause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from scoring.reference.quantities import canonical
from scoring.reference.text import words_only

CLAUSE = re.compile(r"(?<!\d)[,.]|[,.](?!\d)|[;!?。\n|]|但是?|而(?=[^且])")


@dataclass(frozen=True)
class Reading:
    """An answer as it is compared: canonical text, words only, clauses; `asked` is what the question says."""

    answer: str
    question: str

    @cached_property
    def text(self) -> str:
        return canonical(self.answer)

    @cached_property
    def words(self) -> str:
        return words_only(self.text)

    @cached_property
    def asked(self) -> str:
        return words_only(canonical(self.question))

    @cached_property
    def clauses(self) -> list[tuple[str, str]]:
        """Each clause with its words."""
        pairs = ((clause, words_only(clause)) for clause in CLAUSE.split(self.text))
        return [(clause, words) for clause, words in pairs if words]
