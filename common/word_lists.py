"""Where jieba keeps the word list that it has built: beside its own files, where nobody else writes.

keep_private(tokenizer)  # before its first word
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def keep_private(tokenizer: Any) -> None:
    """Keep a tokenizer of jieba from the shared temporary folder: jieba unmarshals its cache, so
    whoever can write to that folder could run code here, or change which words are found.
    """
    tokenizer.tmp_dir = str(Path(str(import_module("jieba").__file__)).parent)
