"""The SQL tool's messages in English, beside the Chinese ones."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path


def in_both(message: str) -> str:
    """Return a message in Chinese and, on a line of its own, in English."""
    for pattern, english in _messages():
        found = pattern.fullmatch(message)
        if found:
            return f"{message}\n{english.format(*found.groups())}"
    return message


@cache
def _messages() -> list[tuple[re.Pattern[str], str]]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    messages = []
    for chinese, english in table.items():
        pattern = "(.*?)".join(map(re.escape, chinese.split("{}")))
        pattern = re.sub("。$", "[。…]", pattern)  # a long one was cut
        messages.append((re.compile(pattern, re.DOTALL), english.replace("{ }", "{{ }}")))
    return messages
