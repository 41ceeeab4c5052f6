"""How people ask, in Chinese, and the one wording of each gold answer (`wordings.toml`).

A phrasing belongs to one column only, so that every question has exactly one right column. In the
texts, `{name}` is the entity, `{word}` a search word, a disease or a filter value.
"""

import random
from dataclasses import dataclass
from itertools import cycle

from common.toml import table_beside

_TEXTS = table_beside(__file__)
_COLUMNS = {
    column: texts for table in _TEXTS["columns"].values() for column, texts in table.items()
}


@dataclass(frozen=True)
class Phrases:
    """Ways to ask one thing: those for every split, and those for held-out questions only."""

    seen: list[str]
    unseen: list[str]

    def order(self, rng: random.Random, held_out: bool) -> list[str]:
        """Return all phrasings that may be used, shuffled. For held-out questions every second is
        unseen.
        """
        known, new = (rng.sample(wordings, len(wordings)) for wordings in (self.seen, self.unseen))
        if not held_out:
            return known
        pairs = zip(known, cycle(new), strict=False)
        start = rng.randrange(2)
        both = [wording for pair in pairs for wording in pair]
        return both[start:] + both[:start]


# Phrasings that ask for one field of one drug or disease, and words for the field in questions
# about several.
QUESTIONS = {
    name: Phrases(texts["seen"], texts["unseen"])
    for name, texts in _COLUMNS.items()
    if "seen" in texts
}
WORDS: dict[str, list[str]] = {
    name: texts["words"] for name, texts in _COLUMNS.items() if "words" in texts
}
# The word for the field in gold answers.
LABELS = {name: words[0] for name, words in WORDS.items()}
# Phrasings that ask for a detail. A text with that detail contains one of the words.
NEEDS: dict[str, list[str]] = _TEXTS["needs"]
# Fields are joined by 、 and 和 into {field}.
MULTI, COMPARE, TO_DRUG = (Phrases(**_TEXTS[name]) for name in ("multi", "compare", "to_drug"))
# Phrasings by the searched column, and by what is counted.
SEARCH, COUNT = (
    {name: Phrases(**texts) for name, texts in _TEXTS[table].items()}
    for table in ("search", "count")
)
ANSWERS: dict[str, str] = _TEXTS["answers"]
ADMINISTRATION: dict[str, str] = _TEXTS["administration"]
MISNAMING: dict[str, str] = _TEXTS["misnaming"]
