"""How good a model of the simulator is: what it writes for an examination beside what the record
has.

    made = Made(task, "complete blood count", recorded, text, past=())
    rules(made)                             # {"similarity": 0.86, "consistency": 1.0}
    numbers([made, ...])["wasserstein"]     # mean over the numbers of examinations, in the records' deviations

Similarity and consistency are an LLM judge's where there is one (world_judge.toml), else these
rules', which see numbers and words and know no medicine. `utils/simulator_quality.py` is the
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
    """The numbers of a result as our reports write them, "NAME VALUE UNIT; ...", their marks left
    out.
    """
    found = (NUMBER.fullmatch(MARK.sub("", part.strip())) for part in text.split(";"))
    return {match[1].strip(): (float(match[2]), match[3].strip()) for match in found if match}


def rules(made: Made) -> dict[str, float]:
    """By rule, in [0, 1]. similarity: share of the recorded numbers that the model has on the same
    side of their range, or word-F1 of texts. consistency: 1 where it has the record's numbers, no
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
    """Of the numbers that record and model have at least FEWEST times: their Wasserstein distance
    in the records' standard deviations, mean and by examination; beside it `floor`, that of two
    random halves of the records, which is what chance makes of no difference. spread: the model's
    standard deviation over the records', median.
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
    """Different texts that the model has for what is recorded in words, over those of the records."""
    texts = [(made.name, split_range(made.recorded)[0], made.text) for made in results]
    worded = [one for one in texts if not values_of(one[1])]
    recorded, written = ({(one[0], one[side]) for one in worded} for side in (1, 2))
    return len(written) / len(recorded) if recorded else None


def case_of(made: Made) -> Case:
    """What an LLM judge is given."""
    earlier = [f"{one.name}: {one.text}" for one in made.past]
    return Case(f"{context(made.task).strip()}\n{made.name}", made.text, made.recorded, earlier)


def material(case: Case) -> dict[str, str | None]:
    """What it is shown of that."""
    return {
        "patient, diagnosis, examination": case.question,
        "earlier results": "\n".join(case.context) or None,
        "recorded result": case.reference,
        "result to judge": case.answer,
    }


_WORDS = tomllib.loads(Path(__file__).with_name("world_judge.toml").read_text(encoding="utf-8"))
WORDS = JudgeWords(**_WORDS | {"material": material, "known_case": Case(**_WORDS["known_case"])})
