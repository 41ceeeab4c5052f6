"""Every cause stands in the one list, and the page shows the list.

Keeps of docs/evaluate-and-serve.md, "How episodes end": both tables are the code's.
"""

from __future__ import annotations

import re

from common.settings import ROOT
from episodes.outcomes import STOP_REASONS, UNSCORED


def test_the_page_shows_both_lists() -> None:
    page = (ROOT / "docs" / "evaluate-and-serve.md").read_text(encoding="utf-8")
    section = page.split("## How episodes end")[1].split("\n## ")[0]
    tables = [
        dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", part, flags=re.MULTILINE))
        for part in section.split("| cause |")
    ]
    assert tables == [STOP_REASONS, UNSCORED]
