"""What else the page of a served agent does in a real browser (test_browser.py asks it a question).

Skipped, saying so, where there is no Chromium or no playwright.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.episodes.scripted import ScriptedLLM, says
from tests.evaluation.visiting import served

pytestmark = pytest.mark.nightly


def test_it_opens_with_three_examples_of_which_one_is_a_click_away(
    sql: str, llm: ScriptedLLM, visit: Any
) -> None:
    """A stranger who sees an empty box does not know what to ask."""
    llm.script(says("不知道。"))
    page = visit(sql)
    assert page.title() == page.inner_text("h1")
    examples = page.locator("#examples button")
    asked = examples.all_inner_texts()
    assert len(set(asked)) == 3
    examples.nth(1).click()
    page.wait_for_selector("li.end")
    assert page.inner_text("li.visitor p") == asked[1]
    assert "正确答案" in page.inner_text("li.end")
    assert not page.locator("#intro").is_visible()
    page.get_by_role("button", name="English").click()
    page.get_by_role("button", name="New").click()
    assert page.locator("#intro").is_visible()


def test_escape_stops_and_the_question_can_be_asked_again(
    sql: str, llm: ScriptedLLM, visit: Any
) -> None:
    llm.delay = 20
    llm.script(says("ok"))
    page = visit(sql)
    page.keyboard.type("x")
    page.keyboard.press("Enter")
    page.wait_for_selector("#stop:not([disabled])")
    page.keyboard.press("Escape")
    page.wait_for_selector("#state:has-text('已停止')")
    llm.delay = 0
    page.keyboard.type("x")
    page.keyboard.press("Enter")
    page.wait_for_selector("li.end")


def test_the_visitor_plays_the_patient(llm: ScriptedLLM, visit: Any) -> None:
    llm.script(
        says("<think>部位</think><answer>问题：哪里疼？</answer>"),
        says("<answer>诊断：急性阑尾炎\n建议：去急诊</answer>"),
    )
    with served("consultation", llm.base_url) as (address, _):
        page = visit(address)
        page.get_by_role("button", name="English").click()
        page.locator("#words").focus()
        page.keyboard.type("我肚子疼。")
        page.keyboard.press("Enter")
        page.wait_for_selector("#prompt:has-text('Your answer')")
        assert page.locator("li.agent p.text").last.inner_text() == "问题：哪里疼？"
        page.keyboard.type("右下腹。")
        page.keyboard.press("Enter")
        page.wait_for_selector("li.end")
        assert "右下腹。" in llm.requests[-1]["messages"][-1]["content"]
        page.keyboard.press("Enter")  # "new" has the focus
        page.wait_for_selector("#log:not(:has(li))", state="attached")
        page.select_option("#case", "random")
        page.locator("#send").press("Enter")
        page.wait_for_selector("li.end")
        assert "Right answer" in page.locator("li.end").inner_text()


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
