"""How a patient answers for what doctors ask beside facets and symptoms, by topics.toml.

topics()["smoking"].no      # "不抽烟。"
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from common.toml import table_beside


@dataclass(frozen=True)
class Topic:
    """One topic, with the columns of topics.toml."""

    name: str
    of: Sequence[str] = ()
    own: re.Pattern[str] = re.compile("(?!)")
    values: Sequence[str] = ()
    no: str = ""
    only: str = ""
    complaint: Mapping[str, str] = field(default_factory=dict)


@cache
def topics() -> dict[str, Topic]:
    """Return all topics by name, in the order of the file."""
    found = dict[str, Topic]()
    for name, columns in table_beside(__file__).items():
        if "own" in columns:
            columns["own"] = re.compile(columns["own"])
        found[name] = Topic(name, **columns)
    return found
