"""The page of a served agent in a real browser; skipped, saying so, where there is no Chromium or
no playwright.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.episodes.scripted import ScriptedLLM, asks, says
from tests.evaluation.visiting import served
from tests.sql_agent.small_database import STORAGE

QUERY = "SELECT med_name, storage FROM drugs_info WHERE med_name = '朵莎洛片'"
HOSTILE = (
    "<think></think><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    "<svg onload=\"document.title='owned'\"></svg><a href=\"javascript:document.title='owned'\">x</a>"
)


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Opens a page; afterwards nothing may have been asked of another host, and nothing have
    failed.
    """
    opened: list[Any] = []
    seen: list[str] = []

    def open_page(address: str, wait: bool = True, **options: Any) -> Any:
        context = browser.new_context(**{"locale": "en-US", **options})
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith(address) else seen.append(request.url),
        )
        page.goto(address)
        if wait:
            page.wait_for_selector("option[value=random]", state="attached")
        return page

    yield open_page
    for context in opened:
        context.close()
    assert [url for url in seen if not url.startswith("data:")] == []


@pytest.fixture
def sql(llm: ScriptedLLM, database_url: str) -> Iterator[str]:
    with served("sql", llm.base_url, database_url=database_url) as (address, _):
        yield address


def test_by_the_keyboard_alone_a_question_its_steps_and_what_it_cost(
    sql: str, llm: ScriptedLLM, visit: Any
) -> None:
    llm.script(asks(QUERY), says(f"贮藏方法：{STORAGE}"))
    page = visit(sql, locale="zh-CN", permissions=["clipboard-read", "clipboard-write"])
    page.keyboard.type("朵莎洛片怎么保存？")
    page.keyboard.press("Enter")
    page.wait_for_selector("li.end")
    assert page.locator("li.agent pre").first.inner_text() == QUERY
    assert page.locator("td").all_inner_texts() == ["朵莎洛片", STORAGE]
    cost = page.locator("li.end .cost")
    assert "回复 2 次" not in cost.inner_text(), "what it took is folded"
    cost.locator("summary").click()
    assert "回复 2 次" in cost.inner_text()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    page.locator("#words").focus()
    for _ in range(2):  # from the question over "send" to "copy"
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#state:has-text('已复制')")
    assert QUERY in page.evaluate("navigator.clipboard.readText()")


def test_it_opens_with_what_it_is_and_three_examples_of_which_one_is_a_click_away(
    sql: str, llm: ScriptedLLM, visit: Any
) -> None:
    """A stranger who sees an empty box does not know what to ask."""
    llm.script(says("不知道。"))
    page = visit(sql)
    assert page.title() == page.inner_text("h1") == "药品与疾病问答"
    assert "SQL" in page.inner_text("#about")
    examples = page.locator("#examples button")
    asked = examples.all_inner_texts()
    assert len(set(asked)) == 3
    examples.nth(1).click()
    page.wait_for_selector("li.end")
    assert page.inner_text("li.visitor p") == asked[1]
    assert "正确答案" in page.inner_text("li.end")
    assert not page.locator("#intro").is_visible()
    assert "重新开始" in (page.locator("#words").get_attribute("placeholder") or "")
    page.get_by_role("button", name="English").click()
    page.locator("li.end summary").click()
    page.get_by_role("button", name="New").click()
    assert page.inner_text("h1") == "Questions about drugs and diseases"
    assert page.locator("#intro").is_visible()
    llm.script(says("好。"))
    examples.first.click()
    page.wait_for_selector("li.end summary")
    page.locator("li.end summary").click()
    assert page.inner_text("li.end .cost p").startswith("1 reply, ")


def test_what_a_model_writes_cannot_run(sql: str, llm: ScriptedLLM, visit: Any) -> None:
    llm.script(asks(HOSTILE), says(HOSTILE))
    page = visit(sql)
    page.keyboard.type(HOSTILE)
    page.keyboard.press("Enter")
    page.wait_for_selector("li.end")
    assert page.locator("#log :is(img, script, svg, a)").count() == 0
    assert (
        page.locator("li.end p.text").inner_text().endswith(HOSTILE.removeprefix("<think></think>"))
    )
    assert page.title() == "药品与疾病问答"
    blocked = "() => { try { document.body.innerHTML = '<img>'; return false } catch (error) { return true } }"
    assert page.evaluate(blocked), "the policy of the page forbids to make markup of text"


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
        over = "This conversation is over. Press New to begin again."
        assert page.locator("#words").get_attribute("placeholder") == over
        page.keyboard.press("Enter")  # "new" has the focus
        page.wait_for_selector("#log:not(:has(li))", state="attached")
        page.select_option("#case", "random")
        page.locator("#send").press("Enter")
        page.wait_for_selector("li.end")
        assert "Right answer" in page.locator("li.end").inner_text()
        llm.script(says("<answer>问题：多久了？</answer>"))
        page.locator("#fresh").click()
        page.locator("#words").fill("我头疼。")
        page.keyboard.press("Enter")
        page.wait_for_selector("#prompt:has-text('Your answer')")
        assert [one["role"] for one in llm.requests[-1]["messages"]] == ["system", "user"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1600])
def test_narrow_and_wide_light_and_dark(
    sql: str, llm: ScriptedLLM, visit: Any, scheme: str, width: int
) -> None:
    llm.script(asks(QUERY), says("答" * 300))
    page = visit(sql, color_scheme=scheme, viewport={"width": width, "height": 640})
    page.keyboard.type("w" * 200)
    page.keyboard.press("Enter")
    page.wait_for_selector("li.end")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    top = page.locator("li.end p.text").bounding_box()["y"]
    assert page.locator("main").bounding_box()["y"] <= top, "the answer's first line is in sight"
    assert top + 24 <= page.locator("form").bounding_box()["y"]
    paper, ink = (
        page.evaluate(f"getComputedStyle(document.documentElement).{name}")
        for name in ("backgroundColor", "color")
    )
    bright = [
        sum(map(int, colour.removeprefix("rgb(").rstrip(")").split(","))) for colour in (paper, ink)
    ]
    assert (bright[0] > bright[1]) == (scheme == "light")


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


def test_a_token_typed_with_chinese_characters_is_a_wrong_token(
    llm: ScriptedLLM, visit: Any
) -> None:
    with served("consultation", llm.base_url, token="s3cret") as (address, _):
        page = visit(address, wait=False)
        page.wait_for_selector("#tokenrow:not([hidden])")
        page.locator("#token").fill("密码s3cret")
        page.keyboard.press("Tab")
        page.get_by_text("Wrong token.").wait_for()  # nothing is known of the agent yet
        page.locator("#token").fill("s3cret")
        page.keyboard.press("Tab")
        page.wait_for_selector("option[value=random]", state="attached")
