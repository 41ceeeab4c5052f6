"""Build the embedded database data/medical.db: invented drugs and diseases, made by rule from one seed.

No name or text comes from a real product or textbook, so nobody can mistake it for advice, and the file may be shared.
The same seed gives the same rows, and the same bytes with the same SQLite version.

    python -m data.build_database            # writes data/medical.db, refuses if it exists
    python -m data.build_database --force    # replaces it
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from data import vocabulary as words
from data.schema import ASKABLE, metadata

HERE = Path(__file__).resolve().parent
DEFAULT_PATH = HERE / "medical.db"
SEED = 20250101
DRUGS, DISEASES = 320, 200
WRITTEN_AT = "2025-01-01 00:00:00"
MAX_TRIES = 10_000

Row = dict[str, str | int]


def invent_names(count: int, syllables: int, endings: Iterable[str], rng: random.Random, taken: set[str]) -> list[str]:
    """`count` names of `syllables` different syllables and an ending; stems are never shared, and enter `taken`."""
    endings = tuple(endings)
    names: list[str] = []
    while len(names) < count:
        stem = "".join(rng.sample(sorted(words.SYLLABLES), syllables))
        if any(stem in other or other in stem for other in taken):
            continue
        taken.add(stem)
        names.append(stem + rng.choice(endings))
    return names


def invent_drug(name: str, rng: random.Random) -> Row:
    """The fields of one drug, `id` left out."""
    form = next(ending for ending in words.DRUG_FORMS if name.endswith(ending))
    stem = name.removesuffix(form)
    pick = rng.choice
    first, second, third = rng.sample(words.SYMPTOMS, 3)
    barred, careful, warned = rng.sample(words.GROUPS, 3)
    allergen, second_allergen = rng.sample(words.ALLERGENS, 2)
    unit = words.DOSE_UNITS[form]
    dose = rng.randint(2, 99)
    return {
        "med_name": name,
        "med_name_initial": "".join(words.SYLLABLES[syllable] for syllable in stem) + words.DRUG_FORMS[form],
        "med_barcode": f"000{rng.randrange(10**10):010d}",
        "med_approval": f"虚构准字{rng.randrange(10**8):08d}",
        "component": f"{stem}素{rng.randint(2, 90)}{unit}",
        "form": form,
        "dosage": f"一次{dose}{unit}，一日{rng.randint(1, 4)}次，{pick(words.MEAL_TIMES)}",
        "indication": f"用于{pick(words.SEVERITIES)}{pick(words.SITES)}{pick(words.PROBLEMS)}伴{third}",
        "adverse_reactions": f"{first}、{second}，{pick(words.FREQUENCIES)}{pick(words.SITES)}{pick(words.PROBLEMS)}",
        "contraindications": f"{barred}及对{allergen}、{second_allergen}过敏者禁用",
        "precautions": f"{careful}、{warned}慎用，避免{pick(words.ACTIVITIES)}",
        "company_name": f"虚构{pick(sorted(words.SYLLABLES))}{pick(sorted(words.SYLLABLES))}药业",
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


def invent_disease(name: str, rng: random.Random) -> Row:
    """The fields of one disease, `id` left out."""
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


def invent_table(
    names: list[str], invent: Callable[[str, random.Random], Row], unique: Iterable[str], rng: random.Random
) -> list[Row]:
    """One row a name; no two rows share a text in a column of `unique`, so that an answer belongs to one row only."""
    unique = tuple(unique)
    seen: set[tuple[str, str | int]] = set()
    rows: list[Row] = []
    for number, name in enumerate(names, start=1):
        for _ in range(MAX_TRIES):
            row = invent(name, rng)
            texts = {(column, row[column]) for column in unique}
            if not texts & seen:
                break
        else:
            raise RuntimeError(
                f"no unused texts left for {name} after {MAX_TRIES} tries: add words to data/vocabulary.py"
            )
        seen |= texts
        rows.append({"id": number, **row})
    return rows


def invent_all(seed: int = SEED, drugs: int = DRUGS, diseases: int = DISEASES) -> dict[str, list[Row]]:
    """Both tables' rows by table name; the same arguments give the same rows."""
    rng = random.Random(seed)
    taken: set[str] = set()
    drug_names = invent_names(drugs, 3, words.DRUG_FORMS, rng, taken)
    disease_names = invent_names(diseases, 3, words.DISEASE_ENDINGS, rng, taken)
    return {
        "drugs_info": invent_table(drug_names, invent_drug, ASKABLE["drugs_info"], rng),
        "disease": invent_table(disease_names, invent_disease, ASKABLE["disease"], rng),
    }


def write_database(path: Path, tables: dict[str, list[Row]]) -> None:
    """Write the tables into a new SQLite file at `path`; an older file is replaced in one step, or kept on failure."""
    from sqlalchemy import create_engine

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    os.close(handle)
    try:
        engine = create_engine(f"sqlite:///{temporary}")
        schema = metadata()
        schema.create_all(engine)
        with engine.begin() as connection:
            for name, rows in tables.items():
                connection.execute(schema.tables[name].insert(), rows)
        engine.dispose()
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the embedded database of invented drugs and diseases.")
    parser.add_argument("--output", type=Path, default=DEFAULT_PATH, help="file to write (default: data/medical.db)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"same seed, same rows (default: {SEED})")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    options = parser.parse_args(arguments)
    if options.output.exists() and not options.force:
        print(f"{options.output} exists; give --force to replace it, or --output for another file", file=sys.stderr)
        return 2
    tables = invent_all(options.seed)
    try:
        write_database(options.output, tables)
    except OSError as error:
        print(f"cannot write {options.output}: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: " + ", ".join(f"{len(rows)} rows in {name}" for name, rows in tables.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
