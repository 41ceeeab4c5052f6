"""What else the page of a served agent does in a real browser (test_browser.py asks it a question).

Skipped, saying so, where there is no Chromium or no playwright.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.episodes.scripted import ScriptedLLM, says
from tests.evaluation.visiting import served

pytestmark = pytest.mark.nightly


def test_the_token_is_asked_for_and_an_error_is_told(llm: ScriptedLLM, visit: Any) -> None:
    llm.status = 400
    with served("consultation", llm.base_url, token="s3cret") as (address, _):
        page = visit(address, wait=False)
        page.wait_for_selector("#tokenrow:not([hidden])")
        page.keyboard.type("s3cret")
        page.keyboard.press("Tab")
        page.wait_for_selector("option[value=random]", state="attached")
        page.locator("#words").fill("疼")
        page.keyboard.press("Enter")
        page.wait_for_selector("li.error:has-text('智能体暂时无法回答')")
        assert "127.0.0.1" not in page.locator("#log").inner_text()
        assert page.locator("#words").input_value() == "疼"  # kept, to be sent again


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
