"""How people ask, in Chinese, and the one wording of each gold answer; the texts are in `templates.toml` beside this.

A phrasing belongs to one column only, so that every question has exactly one right column. In the texts, `{name}` is
the entity, `{word}` a search word, a disease or a filter value.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_COLUMNS = {column: texts for table in _TEXTS["columns"].values() for column, texts in table.items()}

# Phrasings that ask for one field of one drug or disease, and words for the field in questions about several.
QUESTIONS: dict[str, list[str]] = {name: texts["questions"] for name, texts in _COLUMNS.items() if "questions" in texts}
WORDS: dict[str, list[str]] = {name: texts["words"] for name, texts in _COLUMNS.items() if "words" in texts}
# The word for the field in gold answers.
LABELS = {name: words[0] for name, words in WORDS.items()}
# Phrasings that ask for a particular, and the words of which a text that has it has one.
NEEDS: dict[str, list[str]] = _TEXTS["needs"]
# Fields are joined by 、 and 和 into {fields}.
MULTI: list[str] = _TEXTS["multi"]
COMPARE: list[str] = _TEXTS["compare"]
TO_DRUG: list[str] = _TEXTS["to_drug"]
# By the column that is searched, and by what is counted.
SEARCH: dict[str, list[str]] = _TEXTS["search"]
COUNT: dict[str, list[str]] = _TEXTS["count"]
ANSWERS: dict[str, str] = _TEXTS["answers"]
MISNAMING: dict[str, str] = _TEXTS["misnaming"]
