"""What answers reveal about a patient's condition: naive Bayes over the tables."""

from collections.abc import Iterator, Mapping
from math import exp, log

from conditions.condition_types import Condition, Range, Spread, Tables, Weights
from conditions.examination_results import Result
from recipes.doctors.results import SYMPTOMATIC, spread_of, texts_of

# The share of patients with a symptom that their condition does not name, if it is no alarming one
BACKGROUND = 0.005
UNSEEN = 1e-3  # the weight of what a condition does not have
# The least weight of a result: the density of a number is small where findings spread widely
FARTHEST = 1e-5

Value = str | bool | int | Result


def posterior(
    tables: Tables, group: Mapping[str, Condition], known: Mapping[str, Value]
) -> dict[str, float]:
    """Return the chance of each condition of a group, all being equally likely before anything is
    known.
    """
    logs = {
        name: sum(log_likelihood(tables, condition, item, value) for item, value in known.items())
        for name, condition in group.items()
    }
    highest = max(logs.values())
    shares = {name: exp(value - highest) for name, value in logs.items()}
    return {name: share / sum(shares.values()) for name, share in shares.items()}


def log_likelihood(tables: Tables, condition: Condition, item: str, value: Value) -> float:
    """Return the log-likelihood of an item of a patient with the condition. The result of an
    examination is an item, too.
    """
    if isinstance(value, Result):
        return sum(log(max(chance, FARTHEST)) for chance in _chances(condition, value))
    if item in tables.symptoms:
        share = share_of(tables, condition, item)
        chance = share if value else 1 - share
    elif item == "sex":
        chance = condition.female if value == "female" else 1 - condition.female
    elif item == "age":
        youngest, oldest = condition.ages
        chance = (youngest <= int(value) <= oldest) / (oldest - youngest + 1)
    else:
        chance = weights_of(tables, condition, item).get(str(value), 0)
    return log(max(chance, UNSEEN))


def share_of(tables: Tables, condition: Condition, symptom: str) -> float:
    """Return how many of the patients with a condition have a symptom."""
    usual = 0 if tables.symptoms[symptom].alarming else BACKGROUND
    return condition.symptoms.get(symptom, usual)


def weights_of(tables: Tables, condition: Condition, facet: str) -> Weights:
    """Return the weights of a facet's values: the condition's, else the usual ones."""
    return condition.facets.get(facet) or tables.facets[facet].usual


def _chances(condition: Condition, result: Result) -> Iterator[float]:
    """Yield the weight of each number or text relative to the middle of the normal range."""
    finding = condition.examinations.get(result.name, {})
    if result.seen:
        yield texts_of(result.examination, finding).get(result.seen, 0)
    for part, value in result.numbers.items():
        usual = result.range_of(part)
        symptom = SYMPTOMATIC[part][0] if part in SYMPTOMATIC else ""
        abnormal = spread_of(finding, part, {symptom: True})
        healthy = _density(value, Spread(usual.mean, usual.sd), usual)
        if abnormal is None:
            yield healthy
            continue
        share = condition.symptoms.get(symptom, 0) if symptom else 1.0
        yield share * _density(value, abnormal, usual) + (1 - share) * healthy


def _density(value: float, spread: Spread, usual: Range) -> float:
    return exp(-(((value - spread.mean) / spread.sd) ** 2) / 2) * usual.sd / spread.sd
