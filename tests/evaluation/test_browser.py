"""The pages that a user meets, in a real Chromium: the report and a served agent open, are used by
keys, and let nothing that a model wrote do anything.

Skipped, saying so, where there is no Chromium (Debian's package `chromium`) or no playwright.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from evaluation.report.__main__ import main
from tests.corpora import write_lines
from tests.episodes.scripted import asks, says
from tests.evaluation.evaluations import evaluation, record
from tests.evaluation.folders import hostile_records, hostile_texts, rollout, training_run
from tests.messages import missing
from tests.sql_agent.small_database import STORAGE

UNHARMED = (
    "window.report.ready && window.hacked === undefined && Object.prototype.ran === undefined"
)
MARKUP = "img, iframe, object, embed, link, base, meta, video, math, style, svg[onload]"
QUERY = "SELECT med_name, storage FROM drugs_info WHERE med_name = '朵莎洛片'"
HOSTILE = (
    "<think></think><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    "<svg onload=\"document.title='owned'\"></svg><a href=\"javascript:document.title='owned'\">x</a>"
)
OPEN_ALL = "document.querySelectorAll('#one details').forEach((node) => { node.open = true })"
CHOOSE = """(at) => new Promise((done) => {
    addEventListener("hashchange", done, { once: true });
    location.hash = address(rows[at]);
})"""


@pytest.fixture
def report(open_page):
    """Open the file of a report."""

    def opened(path: Path, hash: str = "", **how: Any) -> Any:
        page = open_page(path.as_uri() + hash, **how)
        assert page.evaluate("window.report.ready")
        return page

    return opened


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two evaluations of the same tasks, and a training run."""
    folder = tmp_path_factory.mktemp("two")
    reply = {"role": "assistant", "content": "a reply with 药 in it"}
    said = [{"role": "system", "content": "rules"}, reply]
    kinds = [*enumerate(("drug_field", "count_filter") * 20)]
    told = {"transcript": said}
    tasks = [record(f"t{n}", n % 2, reward=n % 2, task_type=kind, **told) for n, kind in kinds]
    tasks[0]["question"] = "Which icd9_code has t0?"
    evaluation(folder / "before", tasks)
    evaluation(folder / "after", [task | {"score": 1.0, "reward": 1.0} for task in tasks])
    training_run(folder / "train")
    parts = [str(folder / name) for name in ("before", "train", "after")]
    assert main([*parts, "--out", str(folder / "report.html")]) == 0
    return folder / "report.html"


def test_hostile_texts_do_nothing(tmp_path, report):
    folder = evaluation(tmp_path / "e", [record()])
    records = hostile_records()
    write_lines(folder / "episodes.jsonl", records)
    assert main([str(folder)]) == 0
    page = report(folder / "report.html")
    assert page.evaluate("window.report.episodes.length") == len(records)
    for number, text in enumerate(hostile_texts()):
        page.evaluate(CHOOSE, number)
        assert page.locator("#one .pieces").count() == 1, text
        page.evaluate(OPEN_ALL)
        if text.isascii() and text.isprintable():
            assert text in page.inner_text("#one .pieces"), text
            assert text in page.inner_text("#one h3"), text
        assert page.evaluate(UNHARMED), text
        assert page.evaluate("document.querySelectorAll('script').length") == 2
        assert page.evaluate("getComputedStyle(document.body).opacity") == "1"
    assert page.locator(f"body :is({MARKUP})").count() == 0
    assert page.seen == []
    assert page.evaluate("location.protocol") == "file:"


def test_hostile_tokens_do_nothing(tmp_path, report):
    run = training_run(tmp_path / "run")
    texts = hostile_texts()
    said = {"trained": True, "ids": [*range(len(texts))], "texts": texts}
    said["log_probs"] = [-1.0] * len(texts)
    told = {"trained": False, "ids": [1], "texts": ["".join(texts)]}
    write_lines(run / "episodes.jsonl", [rollout(1, tokens=[[told, said]])])
    assert main([str(run)]) == 0
    page = report(run / "report.html", "#episode=ro-train-1-0.5&sample=")
    assert page.locator("#one .tokens mark span").count() >= len(texts) - texts.count("")
    shown = page.locator("#one .tokens").text_content()
    assert not missing(shown, *(text for text in texts if text.isascii() and text.isprintable()))
    assert page.evaluate(UNHARMED)
    assert page.locator(f"#one :is({MARKUP})").count() == 0
    assert page.seen == []


def test_the_policy_would_stop_what_got_in(two, report):
    page = report(two)
    for markup in (
        "document.body.insertAdjacentHTML('beforeend', '<img src=https://a.invalid/x onerror=window.hacked=1>')",
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.hacked=1' }))",
    ):
        with page.expect_console_message(lambda said: "Content Security Policy" in said.text):
            page.evaluate(markup)
    assert page.evaluate("window.hacked") is None


def test_the_table_of_failures_leads_to_its_episodes_and_worst_is_of_the_chosen_run(two, report):
    page = report(two)
    row = page.locator("#failures tr", has_text="no query")
    assert row.inner_text() == "no query\t20 (50.0)\t0 (0.0)"
    kinds = page.locator("#failures tbody th").all_text_contents()
    assert (kinds[0], kinds[-1]) == ("no query", "right"), "the most frequent first"
    assert page.locator("#failures button:not([title])").count() == 0
    row.get_by_role("button", name="20 (50.0)").click()
    assert page.get_by_role("status").inner_text() == "20 of 48"
    assert page.get_by_label("Failure").input_value() == "no_query"
    page.get_by_label("Failure").select_option("")
    run = page.locator(".filters label", has_text="Run").first.locator("select")
    run.select_option("2")  # after: nothing is wrong
    page.get_by_label("Order").select_option("worst first")
    assert "t0" in page.locator("#list li").first.text_content()
    run.select_option("0")
    page.get_by_label("Order").select_option("best first")
    assert "t1" in page.locator("#list li").first.text_content()
    assert page.locator(".card.better").count() == 1, "one verdict, and the training has none"
    assert page.locator("thead th:not([title])").all_text_contents() == []


def test_a_link_to_one_episode_survives_copying(two, report):
    page = report(two, "#episode=t3&sample=0")
    assert page.inner_text("#one h3") == "question t3"
    assert page.locator("#one .member").count() == 2  # both evaluations played it
    link = page.get_by_role("link", name="link to this episode").get_attribute("href")
    assert report(two, link).inner_text("#one h3") == "question t3"
    gone = report(two, "#episode=" + quote("nobody & nothing"))
    assert "not on this page" in gone.inner_text("#one")


def test_it_is_used_by_keys_alone(two, report):
    page = report(two)
    page.keyboard.press("/")
    page.keyboard.type("question t1")
    assert page.get_by_role("status").inner_text() == "11 of 48"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_url("**#episode=t1&*")
    page.keyboard.press("j")
    page.wait_for_url("**#episode=t10&*")
    page.keyboard.press("k")
    page.wait_for_url("**#episode=t1&*")
    page.keyboard.press("Escape")
    page.wait_for_url("**#episodes")
    chart = page.locator("figure svg").first
    chart.focus()
    page.keyboard.press("ArrowLeft")
    assert "step 2" in page.locator("figure").first.inner_text()


def test_the_page_speaks_the_readers_language_and_has_a_button(two, report):
    page = report(two, "#episode=t3&sample=0", locale="zh-CN")
    seen = page.locator("body").inner_text()
    assert not missing(seen, "变好了。", "药品单项", "已作答")
    for english in ("drug_field", "drug field", "It got", "answered", "too few"):
        assert english not in seen
    page.get_by_role("button", name="English").click()
    assert "Episodes" in page.inner_text("nav")
    assert page.locator("th", has_text="Which icd9_code has t0?").count() == 1


def test_a_question_is_asked_by_the_keyboard_alone(sql, llm, visit):
    llm.script(asks(QUERY), says(f"贮藏方法：{STORAGE}"))
    page = visit(sql, locale="zh-CN", permissions=["clipboard-read", "clipboard-write"])
    page.keyboard.type("朵莎洛片怎么保存？")
    page.keyboard.press("Enter")
    page.wait_for_selector("li.end")
    assert page.locator("li.agent pre").first.inner_text() == QUERY
    assert page.locator("td").all_inner_texts() == ["朵莎洛片", STORAGE]
    assert page.locator("th").all_inner_texts() == ["药品名称", "贮藏"], "not the database's names"
    page.locator("#words").focus()
    for _ in range(2):  # from the question over "send" to "copy"
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#state:has-text('已复制')")
    assert QUERY in page.evaluate("navigator.clipboard.readText()")


def test_a_letter_of_an_action_is_no_answer_that_stands_there(sql, visit):
    page = visit(sql)
    for params, stands in (({"code": "x"}, False), ({"answer": "m"}, True)):
        reply = json.dumps({"action": "submit", "params": params})
        assert page.evaluate("reply => standsIn('m', reply)", reply) == stands
    assert page.evaluate("standsIn('no', '<answer>no</answer>')")


def test_what_a_served_model_writes_cannot_run(sql, llm, visit):
    """Characters that turn a line around or are not seen would show another dose than was written."""
    unseen = "take \u202e05\u202c mg\u200b daily"
    llm.script(asks(HOSTILE), asks(unseen), says(HOSTILE))
    page = visit(sql)
    title = page.title()
    page.keyboard.type(HOSTILE)
    page.keyboard.press("Enter")
    page.wait_for_selector("li.end")
    assert page.locator("#log :is(img, script, svg, a)").count() == 0
    said = page.locator("li.end p.text").inner_text()
    assert said.endswith(HOSTILE.removeprefix("<think></think>"))
    assert page.title() == title != "owned"
    assert page.locator("li.agent pre").nth(1).inner_text() == "take U+202E05U+202C mgU+200B daily"
    blocked = "() => { try { document.body.innerHTML = '<img>'; return false } catch (error) { return true } }"
    assert page.evaluate(blocked), "the policy of the page forbids to make markup of text"
