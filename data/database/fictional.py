"""Invented drugs and diseases, made by rule from one seed, in any number.

No name or text comes from a real product or textbook, so nobody can mistake it for advice, and it may be shared.

    from data.database.fictional import fictional_rows
"""

from __future__ import annotations

import math
import random
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace

from data.database.schema import ASKABLE, FICTIONAL, NAME_COLUMN, Cells

words = SimpleNamespace(**tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8")))

SEED = 20250101
DRUGS, DISEASES = 480, 300
STEM = 3
# Two drugs of five name an invented disease in their indication; one row of twelve has an empty cell to ask for.
LINKED_OF, LINKED = 5, 2
BLANK_SHARE = 1 / 12
KEPT_FULL = {"indication", "overview"}
DRUGS_PER_COMPANY, DRUGS_PER_DISEASE = 3, 2
SCATTER = 10_007  # prime to any power of the number of syllables: neighbouring makers get unlike names, none twice
SYLLABLES = sorted(words.SYLLABLES)
FORMS = tuple(words.DRUG_FORMS)
WRITTEN_AT = "2025-01-01 00:00:00"
MAX_TRIES = 10_000

Invent = Callable[[str, int, random.Random], Cells]


def invent_names(count: int, syllables: int, endings: Iterable[str], rng: random.Random, taken: set[str]) -> list[str]:
    """`count` names of `syllables` different syllables and an ending; stems are never shared, and enter `taken`."""
    endings = tuple(endings)
    names: list[str] = []
    while len(names) < count:
        stem = "".join(rng.sample(SYLLABLES, syllables))
        if any(stem in other or other in stem for other in taken):
            continue
        taken.add(stem)
        names.append(stem + rng.choice(endings))
    return names


def company_name(number: int, rng: random.Random) -> str:
    """The maker of the drug with this number: one of two neighbours, so that a maker has 1 to 6 drugs, 3 on average."""
    maker = max(0, number // DRUGS_PER_COMPANY - rng.randrange(2))
    syllables = 2 if maker < len(SYLLABLES) ** 2 else 3 if maker < len(SYLLABLES) ** 3 else 4
    scattered = maker * SCATTER % len(SYLLABLES) ** syllables
    digits = [scattered // len(SYLLABLES) ** place % len(SYLLABLES) for place in range(syllables)]
    return f"虚构{''.join(SYLLABLES[digit] for digit in digits)}药业"


def linked_disease(number: int, diseases: Sequence[str], rng: random.Random) -> str | None:
    """The disease the drug with this number names, of up to 4 that do; None for most drugs, and where none is left."""
    block, place = divmod(number, LINKED_OF)
    chosen = max(0, (block * LINKED + place) // DRUGS_PER_DISEASE - rng.randrange(2))
    return diseases[chosen] if place < LINKED and chosen < len(diseases) else None


def invent_drug(name: str, number: int, rng: random.Random, diseases: Sequence[str] = ()) -> Cells:
    """The fields of one drug, `id` and `source` left out; `diseases` are the names an indication may hold."""
    form = next(ending for ending in words.DRUG_FORMS if name.endswith(ending))
    stem = name.removesuffix(form)
    pick = rng.choice
    first, second, third = rng.sample(words.SYMPTOMS, 3)
    barred, careful, warned = rng.sample(words.GROUPS, 3)
    allergen, second_allergen = rng.sample(words.ALLERGENS, 2)
    unit = words.DOSE_UNITS[form]
    dose = rng.randint(2, 99)
    complaint = linked_disease(number, diseases, rng) or "".join(
        (pick(words.SEVERITIES), pick(words.SITES), pick(words.PROBLEMS))
    )
    return {
        "med_name": name,
        "med_name_initial": "".join(words.SYLLABLES[syllable] for syllable in stem) + words.DRUG_FORMS[form],
        "med_barcode": f"000{rng.randrange(10**10):010d}",
        "med_approval": f"虚构准字{rng.randrange(10**8):08d}",
        "component": f"{stem}素{rng.randint(2, 90)}{unit}",
        "form": form,
        "dosage": f"一次{dose}{unit}，一日{rng.randint(1, 4)}次，{pick(words.MEAL_TIMES)}",
        "indication": f"用于{complaint}伴{third}",
        "adverse_reactions": f"{first}、{second}，{pick(words.FREQUENCIES)}{pick(words.SITES)}{pick(words.PROBLEMS)}",
        "contraindications": f"{barred}及对{allergen}、{second_allergen}过敏者禁用",
        "precautions": f"{careful}、{warned}慎用，避免{pick(words.ACTIVITIES)}",
        "company_name": company_name(number, rng),
        "description": f"本品为{pick(words.COLOURS)}{form}",
        "mechanism_action": f"作用于{pick(words.SITES)}，减轻{pick(words.PROBLEMS)}",
        "cate_name": pick(words.CATEGORIES),
        "drug_interactions": f"与{pick(words.COMPANIONS)}同服会{pick(words.EFFECTS)}，应隔{rng.randint(2, 12)}小时",
        "storage": f"{pick(words.SEALS)}，{rng.randint(4, 30)}℃以下{pick(words.PLACES)}保存",
        "pack": f"每盒{rng.randint(6, 60)}{'支' if form == '口服液' else '份'}",
        "period": f"{rng.randint(12, 48)}个月",
        "approve_code": f"XG{rng.randrange(10**6):06d}",
        "status": pick(("在售", "停售")),
        "created_at": WRITTEN_AT,
    }


def invent_disease(name: str, number: int, rng: random.Random) -> Cells:
    """The fields of one disease, `id` and `source` left out; its number changes nothing."""
    pick = rng.choice
    first, second = rng.sample(words.SYMPTOMS, 2)
    test, second_test = rng.sample(words.TESTS, 2)
    one, other = rng.sample(words.EXPOSURES, 2)
    return {
        "disease_name": name,
        "overview": f"{pick(words.COURSES)}{pick(words.SITES)}疾病，多见于{pick(words.AGES)}",
        "clinical_manif": f"{first}、{second}，{pick(words.SITES)}{pick(words.PROBLEMS)}，{pick(words.MOMENTS)}加重",
        "complication": f"可并发{pick(words.SITES)}{pick(words.PROBLEMS)}",
        "epidemiology": f"每万人约{rng.randint(1, 90)}例",
        "examination": f"{test}见{pick(words.FINDINGS)}，需加做{second_test}",
        "treatment": f"{pick(words.THERAPIES)}{rng.randint(2, 30)}天，配合{pick(words.CARES)}",
        "cause": f"{pick(words.AGENTS)}{pick(words.ACTIONS)}{pick(words.SITES)}，{pick(words.MOMENTS)}易发",
        "diagnosis": f"依据{test}与病史",
        "differ_diag": f"须与{pick(words.SITES)}{pick(words.PROBLEMS)}相区别",
        "prevention": f"{pick(words.HABITS)}，避免{one}与{other}",
        "prognosis": f"多数{rng.randint(2, 40)}周内好转",
        "create_at": WRITTEN_AT,
        "update_at": WRITTEN_AT,
    }


def invent_table(names: list[str], invent: Invent, unique: Iterable[str], rng: random.Random) -> list[Cells]:
    """One row a name; no two rows share a text in a column of `unique`, so that an answer belongs to one row only."""
    unique = tuple(unique)
    seen: set[tuple[str, str | int | None]] = set()
    rows: list[Cells] = []
    for number, name in enumerate(names, start=1):
        for _ in range(MAX_TRIES):
            row = invent(name, number, rng)
            texts = {(column, row[column]) for column in unique}
            if not texts & seen:
                break
        else:
            raise RuntimeError(
                f"no unused texts left for {name} after {MAX_TRIES} tries: add words to data/database/vocabulary.py"
            )
        seen |= texts
        rows.append({"id": number, **_blank(row, unique, rng), "source": FICTIONAL})
    return rows


def _blank(row: Cells, columns: Iterable[str], rng: random.Random) -> Cells:
    """The row, a few times without one of its texts: a question for it has no answer."""
    if rng.random() >= BLANK_SHARE:
        return row
    return row | {rng.choice([column for column in columns if column not in KEPT_FULL]): None}


def invent_all(seed: int = SEED, drugs: int = DRUGS, diseases: int = DISEASES) -> dict[str, list[Cells]]:
    """Both tables' rows by table name; the same arguments give the same rows."""
    rng = random.Random(seed)
    taken: set[str] = set()
    drug_names = invent_names(drugs, STEM, words.DRUG_FORMS, rng, taken)
    disease_names = invent_names(diseases, STEM, words.DISEASE_ENDINGS, rng, taken)
    return {
        "drugs_info": invent_table(
            drug_names, partial(invent_drug, diseases=disease_names), ASKABLE["drugs_info"], rng
        ),
        "disease": invent_table(disease_names, invent_disease, ASKABLE["disease"], rng),
    }


def fictional_rows(seed: int, drugs: int, diseases: int) -> dict[str, Iterator[Cells]]:
    """Any number of rows by table, made while they are read.

    The first DRUGS and DISEASES of a seed are those of `invent_all` with its defaults; the rest have longer names, no
    two alike, and texts that may repeat, which so many rows can not avoid.

    Raises:
        ValueError: more rows than the vocabulary has names for.
    """
    available = math.perm(len(SYLLABLES), STEM + 1) // 2
    if drugs + diseases > available:
        raise ValueError(f"{drugs + diseases} fictional entities asked for; the vocabulary has names for {available}")
    first = invent_all(seed, min(drugs, DRUGS), min(diseases, DISEASES))
    names = [str(row[NAME_COLUMN[table]]) for table, rows in first.items() for row in rows]
    rng = random.Random(f"{seed} names")
    stems = _longer_stems(rng, {name[:STEM] for name in names})
    more_drugs = [stem + rng.choice(FORMS) for stem in islice(stems, max(0, drugs - DRUGS))]
    more_diseases = [stem + rng.choice(words.DISEASE_ENDINGS) for stem in islice(stems, max(0, diseases - DISEASES))]
    linked = [str(row["disease_name"]) for row in first["disease"]] + more_diseases
    invent = partial(invent_drug, diseases=linked)
    return {
        "drugs_info": chain(first["drugs_info"], _more("drugs_info", more_drugs, invent, seed, DRUGS)),
        "disease": chain(first["disease"], _more("disease", more_diseases, invent_disease, seed, DISEASES)),
    }


def _longer_stems(rng: random.Random, shorter: set[str]) -> Iterator[str]:
    """Stems of one syllable more than the given ones, no two alike and none containing a shorter one."""
    seen: set[str] = set()
    while True:
        stem = "".join(rng.sample(SYLLABLES, STEM + 1))
        if stem in seen or stem[:STEM] in shorter or stem[1:] in shorter:
            continue
        seen.add(stem)
        yield stem


def _more(table: str, names: list[str], invent: Invent, seed: int, start: int) -> Iterator[Cells]:
    rng = random.Random(f"{seed} {table}")
    for number, name in enumerate(names, start=start + 1):
        row = _blank(invent(name, number, rng), ASKABLE[table], rng)
        yield {"id": number, **row, "source": FICTIONAL}
