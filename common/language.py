"""What people read on a terminal, in English or, where the locale is Chinese, in Chinese.

Texts stand in the code in English and in `language.toml` in Chinese.
"""

import os

from common.toml import table_beside

CHINESE: dict[str, str] = table_beside(__file__)


def is_chinese() -> bool:
    """Return whether the locale's messages are Chinese."""
    chosen = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG")
    return (chosen or "").lower().startswith("zh")


def said(text: str, **values: object) -> str:
    """Return a text in the reader's language, with the values in its {fields}."""
    return (CHINESE.get(text, text) if is_chinese() else text).format(**values)
