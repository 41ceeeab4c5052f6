"""What else the page of a served agent does in a real browser (test_browser.py asks it a question).

Skipped, saying so, where there is no Chromium or no playwright.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.episodes.scripted import ScriptedLLM, says

pytestmark = pytest.mark.nightly


def test_characters_that_turn_a_line_around_or_are_not_seen_are_named(
    sql: str, llm: ScriptedLLM, visit: Any
) -> None:
    """As the report names them; obeyed, they would show a dose or a name other than the one that
    was written.
    """
    llm.script(says("take \u202e05\u202c mg\u200b daily\n\tnow"))
    page = visit(sql)
    page.keyboard.type("How much?")
    page.keyboard.press("Enter")
    page.wait_for_selector("li.end")
    shown = page.locator("li.end p.text").first
    assert shown.inner_text() == "take U+202E05U+202C mgU+200B daily\n\tnow"
    assert page.locator("li.end .unseen").all_inner_texts() == ["U+202E", "U+202C", "U+200B"]
