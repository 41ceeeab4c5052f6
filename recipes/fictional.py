"""Invented drugs and diseases, made by rule from one seed, in any number.

No name or text comes from a real product or textbook, so that it cannot be mistaken for advice and
may be shared.
"""

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any

from common.command import UsageError
from common.toml import table_beside
from sql_agent.tables import ASKABLE, NAME_COLUMN, Cells

words = SimpleNamespace(**table_beside(__file__, "vocabulary.toml"))

SEED = 20250101
FICTIONAL = "fictional"  # the source of such rows
DRUGS = 480
DISEASES = 300
STEM = 3
# Two of five drugs name an invented disease in their indication. One of twelve rows has an empty
# cell to ask for.
LINKED_OF = 5
LINKED = 2
BLANK_SHARE = 1 / 12
KEPT_FULL = {"indication", "overview"}
DRUGS_PER_COMPANY = 3
DRUGS_PER_DISEASE = 2
# Coprime to the number of syllables: neighbouring makers get unlike names, and no name repeats
SCATTER = 10_007
SYLLABLES = sorted(words.SYLLABLES)
FORMS = tuple(words.DRUG_FORMS)
SYSTEMS = tuple(words.SYSTEMS.values())
# The longer one comes first: 上呼吸道 holds 呼吸道
SITES = sorted((site for system in SYSTEMS for site in system["SITES"]), key=len, reverse=True)
SITE = re.compile("|".join(SITES))
MISFITS = {"drugs_info": words.drug["misfits"], "disease": words.disease["misfits"]}
WRITTEN_AT = "2025-01-01 00:00:00"
MAX_TRIES = 10_000

Invent = Callable[[str, int, random.Random], Cells]


def invent_stems(length: int, rng: random.Random, shorter: Set[str] = frozenset()) -> Iterator[str]:
    """Yield different beginnings of names, each of so many syllables, none with a shorter one in
    it.
    """
    seen: set[str] = set()
    while True:
        stem = "".join(rng.sample(SYLLABLES, length))
        if not ({stem} & seen or {stem[:STEM], stem[1:]} & shorter):
            seen.add(stem)
            yield stem


def invent_names(
    count: int, stems: Iterator[str], endings: Sequence[str], rng: random.Random
) -> list[str]:
    return [stem + rng.choice(endings) for stem in islice(stems, max(0, count))]


class Filling(dict[str, Any]):
    """Values for the braces of a field's text: a value given, a number of a range, or a word of a
    list.

    The lists are those for all rows, those of one system of the body, and the row's `own`.
    """

    def __init__(
        self, rng: random.Random, samples: Mapping[str, int], own: Mapping[str, Any], **given: Any
    ) -> None:
        self.rng = rng
        self.lists = vars(words) | rng.choice(SYSTEMS) | own
        super().__init__(
            given | {name: rng.sample(self.lists[name], count) for name, count in samples.items()}
        )

    def __missing__(self, key: str) -> Any:
        if key == "maker":
            return maker_of(self["number"], self.rng)
        low, is_range, high = key.partition("-")
        return (
            self.rng.randint(int(low), int(high)) if is_range else self.rng.choice(self.lists[key])
        )


def maker_of(number: int, rng: random.Random) -> str:
    """Return one of two makers, so that a maker has 1 to 6 drugs, 3 on average."""
    maker = max(0, number // DRUGS_PER_COMPANY - rng.randrange(2))
    syllables = 2 if maker < len(SYLLABLES) ** 2 else 3 if maker < len(SYLLABLES) ** 3 else 4
    scattered = maker * SCATTER % len(SYLLABLES) ** syllables
    return "".join(
        SYLLABLES[scattered // len(SYLLABLES) ** place % len(SYLLABLES)]
        for place in range(syllables)
    )


def linked_disease(number: int, diseases: Sequence[str], rng: random.Random) -> str | None:
    """Return the disease that the drug with this number names, of up to 4 that fit, or None."""
    block, place = divmod(number, LINKED_OF)
    chosen = max(0, (block * LINKED + place) // DRUGS_PER_DISEASE - rng.randrange(2))
    return diseases[chosen] if place < LINKED and chosen < len(diseases) else None


def invent_drug(name: str, number: int, rng: random.Random, diseases: Sequence[str] = ()) -> Cells:
    """Return a drug's fields without `id` and `source`. `diseases`: what an indication may name."""
    form = next(ending for ending in FORMS if name.endswith(ending))
    stem = name.removesuffix(form)
    own = words.DRUG_FORMS[form]
    text = Filling(
        rng, words.drug["samples"], own, name=name, number=number, stem=stem, time=WRITTEN_AT
    )
    text["initials"] = "".join(words.SYLLABLES[syllable] for syllable in stem) + own["initials"]
    text["complaint"] = linked_disease(
        number, diseases, rng
    ) or "{SEVERITIES}{COMPLAINTS}".format_map(text)
    return {column: field.format_map(text) for column, field in words.drug["fields"].items()}


def invent_disease(name: str, number: int, rng: random.Random) -> Cells:
    """Return a disease's fields without `id` and `source`. Its number changes nothing."""
    text = Filling(rng, words.disease["samples"], {}, name=name, time=WRITTEN_AT)
    return {column: field.format_map(text) for column, field in words.disease["fields"].items()}


def _fitting(row: Cells, table: str) -> Cells:
    """Return the row with another word for each that does not fit the rest.

    It is not drawn, so that the rows that fit stay as they are.
    """
    text = "\n".join(map(str, row.values()))
    for beside, misfit, instead in MISFITS[table]:
        if re.search(beside, text) and re.search(misfit, text):
            row = {column: re.sub(misfit, instead, str(cell)) for column, cell in row.items()}
    return row


def _acting_on(drug: Cells, overviews: Mapping[str, str]) -> Cells:
    """Return the drug with the part of the body of the disease that its indication names."""
    complaint = str(drug["indication"]).removeprefix("用于").partition("伴")[0]
    part = SITE.search(overviews.get(complaint, ""))
    if not part:
        return drug
    [category] = next(one["CATEGORIES"] for one in SYSTEMS if part[0] in one["SITES"])
    acts = SITE.sub(part[0], str(drug["mechanism_action"]))
    return drug | {"mechanism_action": acts, "cate_name": category}


def invent_rows(
    table: str,
    names: Sequence[str],
    invent: Invent,
    rng: random.Random,
    start: int = 1,
    unique: bool = True,
) -> Iterator[Cells]:
    """Yield one row a name, keys from `start`. `unique`: no two rows share a text that is asked
    for.
    """
    seen: set[tuple[str, str | int | None]] = set()
    for number, name in enumerate(names, start):
        for _ in range(MAX_TRIES):
            row = invent(name, number, rng)
            texts = {(column, row[column]) for column in ASKABLE[table]} if unique else set()
            if not texts & seen:
                break
        else:
            raise RuntimeError(
                f"no unused texts left for {name}: add words to recipes/vocabulary.toml"
            )
        seen |= texts
        row = _fitting(row, table)
        if rng.random() < BLANK_SHARE:  # a question for this text has no answer
            row = row | {
                rng.choice([column for column in ASKABLE[table] if column not in KEPT_FULL]): None
            }
        yield {"id": number, **row, "source": FICTIONAL}


def invent_first(seed: int, drugs: int, diseases: int) -> dict[str, list[Cells]]:
    """Return both tables' first rows by table name. The same arguments give the same rows."""
    rng = random.Random(seed)
    stems = invent_stems(STEM, rng)
    drug_names = invent_names(drugs, stems, FORMS, rng)
    disease_names = invent_names(diseases, stems, words.DISEASE_ENDINGS, rng)
    invent = partial(invent_drug, diseases=disease_names)
    return {
        "drugs_info": list(invent_rows("drugs_info", drug_names, invent, rng)),
        "disease": list(invent_rows("disease", disease_names, invent_disease, rng)),
    }


def fictional_rows(seed: int, drugs: int, diseases: int) -> dict[str, Iterator[Cells]]:
    """Return any number of rows by table. Drugs are made while they are read.

    The first DRUGS and DISEASES of a seed are always the same. The rest have longer names, no two
    alike, and texts that may repeat. Raises UsageError: more rows than the vocabulary has names
    for.
    """
    available = math.perm(len(SYLLABLES), STEM + 1) // 2
    if drugs + diseases > available:
        raise UsageError(
            f"{drugs + diseases} fictional entities asked "
            f"for; the vocabulary has names for {available}"
        )
    first = invent_first(seed, min(drugs, DRUGS), min(diseases, DISEASES))
    names = [str(row[NAME_COLUMN[table]]) for table, rows in first.items() for row in rows]
    rng = random.Random(f"{seed} names")
    stems = invent_stems(STEM + 1, rng, {name[:STEM] for name in names})
    more_drugs = invent_names(drugs - DRUGS, stems, FORMS, rng)
    more_diseases = invent_names(diseases - DISEASES, stems, words.DISEASE_ENDINGS, rng)
    linked = [str(row["disease_name"]) for row in first["disease"]] + more_diseases

    def rows(table: str, names: list[str], invent: Invent, count: int) -> Iterator[Cells]:
        rng = random.Random(f"{seed} {table}")
        return chain(first[table], invent_rows(table, names, invent, rng, count + 1, unique=False))

    made = list(rows("disease", more_diseases, invent_disease, DISEASES))
    overviews = {str(row["disease_name"]): str(row["overview"]) for row in made}
    drawn = rows("drugs_info", more_drugs, partial(invent_drug, diseases=linked), DRUGS)
    return {
        "drugs_info": (_acting_on(drug, overviews) for drug in drawn),
        "disease": iter(made),
    }
