"""The SQL tool's messages in English, beside the Chinese ones."""

import re
import tomllib
from pathlib import Path

TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def in_both(message: str) -> str:
    """Return a message in Chinese and, on a line of its own, in English."""
    for chinese, english in TABLE.items():
        pattern = "(.*?)".join(map(re.escape, chinese.split("{}")))
        pattern = re.sub("。$", "[。…]", pattern)  # a long one was cut
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return f"{message}\n{english.replace('{ }', '{{ }}').format(*found.groups())}"
    return message
