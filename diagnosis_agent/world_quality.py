"""The quality of a simulator's model: its text for an examination is compared with the record's.

    made = Made(task, "complete blood count", recorded, text, past=())
    rules(made)                             # {"similarity": 0.86, "consistency": 1.0}
    numbers([made, ...])["wasserstein"]     # mean over the numbers of examinations, in the records' deviations

Similarity and consistency are an LLM judge's if one is set (world_judge.toml), else those of the
rules here, which see numbers and words and know no medicine. `utils/simulator_quality.py` is the
command.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, median, pstdev
from typing import Any

from diagnosis_agent.llm_simulator import context, split_range
from diagnosis_agent.simulator import Result
from diagnosis_agent.task import DiagnosisTask
from scoring.case import Case
from scoring.llm_judge import JudgeWords
from scoring.text_overlap import word_f1

FEWEST = 10  # values of a number on each side for a distance
# Name, value, unit: 10^9/L is a unit, and a sentence with a number in it is none.
NUMBER = re.compile(r"(?!.*\.\Z)(\D.*) (-?\d+(?:\.\d+)?)(?![\w.^-])(.*)", re.DOTALL)
USUAL = re.compile(r"(.*?) ?(-?\d+(?:\.\d+)?) to (-?\d+(?:\.\d+)?)")
MARK = re.compile(r" \((high|low)\)\Z")
Values = Mapping[str, tuple[float, str]]  # value and unit by the name of a number


@dataclass(frozen=True)
class Made:
    """A result that a model wrote (`text`, without range) for an examination whose recorded one is
    known.
    """

    task: DiagnosisTask
    name: str
    recorded: str
    text: str
    past: tuple[Result, ...] = ()


def values_of(text: str) -> Values:
    """Return the numbers of a result in the form of our reports, "NAME VALUE UNIT; ...", without
    their marks.
    """
    found = (NUMBER.fullmatch(MARK.sub("", part.strip())) for part in text.split(";"))
    return {match[1].strip(): (float(match[2]), match[3].strip()) for match in found if match}


def rules(made: Made) -> dict[str, float]:
    """Return two values by rule, in [0, 1].

    similarity: the share of the recorded numbers that the model has on the same side of their
    range, or the word F1 of texts. consistency: 1 if the model has the record's numbers and no
    others, in their units.
    """
    results, usual = split_range(made.recorded)
    recorded, written = values_of(results), values_of(made.text)
    if not usual:
        return {
            "similarity": word_f1(made.text, results),
            "consistency": float(bool(made.text.strip())),
        }
    sides = {name: (float(low), float(high)) for name, low, high in _ranges(usual)}

    def side(name: str, values: Values) -> int:
        low, high = sides.get(name, (float("-inf"), float("inf")))
        return (values[name][0] > high) - (values[name][0] < low)

    alike = [name in written and side(name, written) == side(name, recorded) for name in recorded]
    units = {name: unit for name, (_, unit) in recorded.items()}
    return {
        "similarity": fmean(alike) if alike else 0.0,
        "consistency": float({name: unit for name, (_, unit) in written.items()} == units),
    }


def _ranges(usual: str) -> list[tuple[str, str, str]]:
    found = (USUAL.fullmatch(part.strip()) for part in usual.split(";"))
    return [(match[1], match[2], match[3]) for match in found if match]


def numbers(results: Sequence[Made], seed: int = 0) -> dict[str, Any]:
    """Return how far the model's numbers are from the records', for numbers that both have at least
    FEWEST times.

    The distance is Wasserstein's, in the records' standard deviations, as a mean and by
    examination. `floor` is the distance of two random halves of the records, which is what chance
    makes of no difference. spread: the model's standard deviation over the records', median.
    """
    from scipy.stats import wasserstein_distance

    sides: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for made in results:
        for side, text in enumerate((split_range(made.recorded)[0], made.text)):
            for name, (value, _) in values_of(text).items():
                sides[f"{made.name}: {name}"][side].append(value)
    random, by_examination = Random(seed), {}
    for name, (recorded, written) in sorted(sides.items()):
        width = pstdev(recorded) if len(recorded) > 1 else 0.0
        if width and min(len(recorded), len(written)) >= FEWEST:
            mixed = random.sample(recorded, len(recorded))
            halves = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
            by_examination[name] = {
                "n": len(written),
                "wasserstein": wasserstein_distance(recorded, written) / width,
                "floor": wasserstein_distance(*halves) / width,
                "spread": pstdev(written) / width,
            }
    every = list(by_examination.values())
    means = {
        key: fmean(one[key] for one in every) if every else None for key in ("wasserstein", "floor")
    }
    spread = median(one["spread"] for one in every) if every else None
    return {**means, "spread": spread, "numbers": len(every), "by_examination": by_examination}


def variety(results: Sequence[Made]) -> float | None:
    """Return the number of different texts by the model for results recorded in words, over that of
    the records; None without such results.
    """
    texts = [(made.name, split_range(made.recorded)[0], made.text) for made in results]
    worded = [one for one in texts if not values_of(one[1])]
    recorded, written = ({(one[0], one[side]) for one in worded} for side in (1, 2))
    return len(written) / len(recorded) if recorded else None


def case_of(made: Made) -> Case:
    """Return what an LLM judge sees."""
    earlier = [f"{one.name}: {one.text}" for one in made.past]
    return Case(f"{context(made.task).strip()}\n{made.name}", made.text, made.recorded, earlier)


def material(case: Case) -> dict[str, str | None]:
    """Return the texts that an LLM judge reads."""
    return {
        "patient, diagnosis, examination": case.question,
        "earlier results": "\n".join(case.context) or None,
        "recorded result": case.reference,
        "result to judge": case.answer,
    }


_WORDS = tomllib.loads(Path(__file__).with_name("world_judge.toml").read_text(encoding="utf-8"))
WORDS = JudgeWords(**_WORDS | {"material": material, "known_case": Case(**_WORDS["known_case"])})
