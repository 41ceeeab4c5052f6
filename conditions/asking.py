"""What answers reveal about a patient's condition, and what to ask next: naive Bayes over the
tables of conditions.

group = tables.group("cough")
chances = posterior(tables, group, {"fever": True, "onset": "days"})     # {"pneumonia": 0.93, ...}
most_telling(tables, group, chances, known)                              # "character"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, log

from conditions.bayes import Value, log_likelihood
from conditions.condition_types import Condition, Tables


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


def most_telling(
    tables: Tables,
    group: Mapping[str, Condition],
    chances: Mapping[str, float],
    known: Iterable[str],
) -> str:
    """Return the unknown symptom or facet that, on average, leaves the least doubt between the
    conditions.
    """
    items = [item for item in tables.items_of(group.values()) if item not in known]
    return min(items, key=lambda item: _doubt_after(tables, group, chances, item))


def _doubt_after(
    tables: Tables, group: Mapping[str, Condition], chances: Mapping[str, float], item: str
) -> float:
    values: Iterable[Value] = (
        (True, False) if item in tables.symptoms else tables.facets[item].values
    )
    doubt = 0.0
    for value in values:
        joint = [
            chances[name] * exp(log_likelihood(tables, one, item, value))
            for name, one in group.items()
        ]
        doubt -= sum(share * log(share / sum(joint)) for share in joint if share)
    return doubt
