"""What people call an entity when not by its exact name: with a typo, shortened, or by another name it goes by.

Each comes with the part of the name that is still intact and finds the entity and no other, so that the gold SQL can
be honest about what the question tells.

    misspelt(entity, catalogue, rng); shortened(entity, catalogue)
"""

from __future__ import annotations

import random
import re

from data.database.schema import NAME_COLUMN
from data.questions.entities import Catalogue, Entity, is_plain
from data.questions.questions import Called
from data.questions.templates import MISNAMING

ALIKE = {pair[at]: pair[1 - at] for pair in reversed(MISNAMING["alike"].split()) for at in (0, 1)}
ENDING, IN_BRACKETS, ALSO_CALLED = (re.compile(MISNAMING[name]) for name in ("ending", "in_brackets", "also_called"))


def misspelt(entity: Entity, catalogue: Catalogue, rng: random.Random) -> Called | None:
    """The name with one character wrong, at a place that leaves a telling part; None if there is none."""
    name = entity.name
    places = [at for at, character in enumerate(name) if character in ALIKE]
    rng.shuffle(places)
    for at in places:
        part = max(name[:at], name[at + 1 :], key=len)
        typed = name[:at] + ALIKE[name[at]] + name[at + 1 :]
        if typed not in catalogue.names[entity.table] and _finds(entity, NAME_COLUMN[entity.table], part, catalogue):
            return Called(typed, part, NAME_COLUMN[entity.table])
    return None


def shortened(entity: Entity, catalogue: Catalogue) -> Called | None:
    """Another name that belongs to the entity alone: a brand name in brackets of the name, what the overview says it is
    also called, or the name without its dosage form or ending; None if there is none."""
    name = entity.name
    brands = [(part, NAME_COLUMN[entity.table]) for part in IN_BRACKETS.findall(name)]
    others = [(part, "overview") for part in ALSO_CALLED.findall(entity.fields.get("overview", "")) if part not in name]
    bare = [(part, NAME_COLUMN[entity.table]) for part in [ENDING.sub("", name)] if part != name]
    for part, column in (*brands, *others, *bare):
        if _finds(entity, column, part, catalogue):
            return Called(part, part, column)
    return None


def _finds(entity: Entity, column: str, part: str, catalogue: Catalogue) -> bool:
    """Whether searching `column` for the part finds this entity and no other."""
    return is_plain(part) and catalogue.find(entity.table, column, part, 1) == [entity.row_id]
