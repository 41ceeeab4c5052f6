"""The report in a real Chromium: it opens, leads to an episode and lets no text of an episode do
anything.

Skipped, saying so, where there is no Chromium (Debian's package `chromium`) or no playwright.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from evaluation import report_page
from evaluation.report import main
from tests.evaluation.evaluations import evaluation, record
from tests.evaluation.folders import (
    hostile_records,
    hostile_texts,
    rollout,
    training_run,
    write_lines,
)

SMALL, LARGE = {"width": 390, "height": 800}, {"width": 1400, "height": 900}
ROWS = "#list li"
CHOOSE = """(at) => new Promise((done) => {
    addEventListener("hashchange", done, { once: true });
    location.hash = address(rows[at]);
})"""


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Open a file, with what the browser complained about and what it asked the network for as
    `page.seen`.
    """
    contexts = []

    def opened(path: Path, hash: str = "", **how: Any) -> Any:
        context = browser.new_context(**{"viewport": LARGE, "locale": "en-US", **how})
        contexts.append(context)
        page = context.new_page()
        page.seen = []
        page.on("pageerror", lambda error: page.seen.append(f"error {error}"))
        page.on("console", lambda said: page.seen.append(f"{said.type} {said.text}"))
        page.on("dialog", lambda dialog: (page.seen.append("dialog"), dialog.dismiss()))
        page.on(
            "request", lambda asked: asked.url.startswith("file:") or page.seen.append(asked.url)
        )
        page.goto(path.as_uri() + hash)
        assert page.evaluate("window.report.ready")
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two evaluations of the same tasks, and a training run."""
    folder = tmp_path_factory.mktemp("two")
    said = [
        {"role": "system", "content": "rules"},
        {"role": "assistant", "content": "a reply with 药 in it"},
    ]
    kinds = ("drug_field", "count_filter")
    tasks = [
        record(f"t{n}", n % 2, reward=n % 2, task_type=kinds[n % 2], transcript=said)
        for n in range(40)
    ]
    evaluation(folder / "before", tasks)
    evaluation(folder / "after", [task | {"score": 1.0, "reward": 1.0} for task in tasks])
    training_run(folder / "train")
    parts = [str(folder / name) for name in ("before", "train", "after")]
    assert main([*parts, "--out", str(folder / "report.html")]) == 0
    return folder / "report.html"


def test_hostile_texts_do_nothing(tmp_path: Path, open_page: Any) -> None:
    folder = evaluation(tmp_path / "e", [record()])
    records = hostile_records()
    assert len(records) >= 60
    write_lines(folder / "episodes.jsonl", records)
    assert main([str(folder)]) == 0
    page = open_page(folder / "report.html")
    assert page.evaluate("window.report.episodes.length") == len(records)
    tags = "new Set([...document.querySelectorAll('body *')].map((node) => node.localName))"
    for number, text in enumerate(hostile_texts()):
        page.evaluate(CHOOSE, number)
        assert page.locator("#one .pieces").count() == 1, text
        page.evaluate(
            "document.querySelectorAll('#one details').forEach((node) => { node.open = true })"
        )
        if text.isascii() and text.isprintable():
            assert text in page.inner_text("#one .pieces"), text
            assert text in page.inner_text("#one h3"), text
        assert page.evaluate(
            "window.report.ready && window.hacked === undefined && Object.prototype.ran === undefined"
        ), text
        assert page.evaluate("document.querySelectorAll('script').length") == 2
        assert page.evaluate("getComputedStyle(document.body).opacity") == "1"
    found = page.evaluate(f"[...{tags}]")
    assert not {
        "img",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "meta",
        "video",
        "math",
        "style",
    } & {*found}
    assert page.seen == []
    assert page.evaluate("location.protocol") == "file:"


def test_hostile_tokens_do_nothing(tmp_path: Path, open_page: Any) -> None:
    run = training_run(tmp_path / "run")
    texts = hostile_texts()
    said = {
        "trained": True,
        "ids": [*range(len(texts))],
        "texts": texts,
        "log_probs": [-1.0] * len(texts),
    }
    told = {"trained": False, "ids": [1], "texts": ["".join(texts)]}
    write_lines(run / "episodes.jsonl", [rollout(1, tokens=[[told, said]])])
    assert main([str(run)]) == 0
    page = open_page(run / "report.html", "#episode=ro-train-1-0.5&sample=")
    assert page.locator("#one .tokens mark span").count() >= len(texts) - texts.count("")
    assert all(
        text in page.locator("#one .tokens").text_content()
        for text in texts
        if text.isascii() and text.isprintable()
    )
    assert page.evaluate(
        "window.report.ready && window.hacked === undefined && Object.prototype.ran === undefined"
    )
    assert (
        page.locator("#one").locator("img, script, iframe, svg[onload], style, link, math").count()
        == 0
    )
    assert page.seen == []


def test_the_policy_would_stop_what_got_in(two: Path, open_page: Any) -> None:
    page = open_page(two)
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=https://a.invalid/x onerror=window.hacked=1>')"
    )
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.hacked=1' }))"
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert sum("Content Security Policy" in line for line in page.seen) >= 2


def test_filters_search_and_order(two: Path, open_page: Any) -> None:
    page = open_page(two)
    rows, found = page.locator(ROWS), page.get_by_role("status")
    assert found.inner_text() == "48 of 48"
    page.get_by_label("Task type").select_option("count_filter")
    assert found.inner_text() == "20 of 48"
    page.get_by_label("Reward from").fill("2")
    assert (found.inner_text(), rows.count()) == ("0 of 48", 0)
    page.get_by_label("Reward from").fill("")
    page.get_by_label("Task type").select_option("")
    page.get_by_label("Text (/)").fill("质")
    assert (found.inner_text(), rows.count()) == ("0 of 48", 0)
    page.get_by_label("Text (/)").fill("with 药")
    assert found.inner_text() == "40 of 48"
    page.get_by_label("Text (/)").fill("")
    page.get_by_label("Order").select_option("most changed first")
    assert "t0" in rows.first.text_content()
    page.get_by_label("Ended").select_option("judge_failed")
    assert (found.inner_text(), rows.count()) == ("1 of 48", 1)


def test_rows_come_as_the_list_is_scrolled_and_a_reader_knows_which_of_how_many(
    two: Path, open_page: Any
) -> None:
    page = open_page(two)
    rows = page.locator(ROWS)
    assert rows.count() < 48
    assert rows.first.get_attribute("aria-setsize") == "48"
    page.evaluate("document.getElementById('list').scrollTop = 1e6")
    page.locator(f"{ROWS}[aria-posinset='48']").wait_for()
    places = page.evaluate(
        f"[...document.querySelectorAll('{ROWS}')].map((node) => node.ariaPosInSet)"
    )
    assert places == [str(number) for number in range(49 - len(places), 49)]
    page.locator(f"{ROWS} a").last.focus()
    page.evaluate("document.getElementById('list').scrollTop = 0")
    page.locator(f"{ROWS}[aria-posinset='1']").wait_for()
    assert page.evaluate("document.activeElement.parentElement.ariaPosInSet") == "48"


def test_the_open_episode_is_in_sight_in_the_list(two: Path, open_page: Any) -> None:
    page = open_page(two, "#episode=t39&sample=0")
    inside = """(() => {
        const box = document.getElementById("list").getBoundingClientRect();
        const row = document.querySelector("#list [aria-current]").getBoundingClientRect();
        return box.top <= row.top + 1 && row.bottom <= box.bottom + 1;
    })()"""
    assert page.evaluate(inside)
    page.keyboard.press("k")
    page.wait_for_url("**#episode=t38&*")
    assert page.evaluate(inside)


def test_a_link_to_one_episode_survives_copying(two: Path, open_page: Any) -> None:
    page = open_page(two, "#episode=t3&sample=0")
    assert page.inner_text("#one h3") == "question t3"
    assert page.locator("#one .member").count() == 2  # both evaluations played it
    link = page.get_by_role("link", name="link to this episode").get_attribute("href")
    assert open_page(two, link).inner_text("#one h3") == "question t3"
    gone = open_page(two, "#episode=" + quote("nobody & nothing"))
    assert "not on this page" in gone.inner_text("#one")


def test_tokens_are_marked_where_trained_and_shaded_by_how_unlikely_they_were(
    two: Path, open_page: Any
) -> None:
    page = open_page(two, "#episode=ro-train-1-0.5&sample=")
    shown = page.locator("#one .tokens")
    assert shown.text_content() == "<|user|>why?be药\n"
    marked = "[...document.querySelectorAll('#one .tokens mark span')].map((node) => [node.textContent, node.className])"
    assert page.evaluate(marked) == [["be", "p0"], ["药", "p2"], ["\n", "p5"]]
    paper = "[...document.querySelectorAll('#one .tokens mark span')].map((node) => getComputedStyle(node).backgroundColor)"
    assert len(set(page.evaluate(paper))) == 3
    assert "6 tokens, 4 trained, mean log-probability -2.14" in page.inner_text("#one")
    rows = page.get_by_role("region", name="The least likely tokens").locator("tbody tr")
    assert rows.first.inner_text().split() == ['"\\n"', "-7", "0.0912", "%"]
    assert page.seen == []


@pytest.mark.parametrize(
    ("episode", "told"),
    [
        ("val-0-00000000&sample=0", "were not kept"),
        ("t3&sample=0", "are kept in training runs alone"),
    ],
)
def test_where_no_tokens_were_kept_the_page_says_so(
    two: Path, open_page: Any, episode: str, told: str
) -> None:
    page = open_page(two, f"#episode={episode}")
    assert page.locator("#one .tokens").count() == 0
    assert told in page.inner_text("#one")


def test_it_is_used_by_keys_alone(two: Path, open_page: Any) -> None:
    page = open_page(two)
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


def test_everything_has_a_name_for_a_screen_reader(two: Path, open_page: Any) -> None:
    page = open_page(two, "#episode=t3&sample=0")
    nameless = """[...document.querySelectorAll('input, select, button, a, svg[role=img], section, [role=region]')]
        .filter((node) => !(node.labels?.length || node.getAttribute('aria-label') || node.textContent.trim()))
        .map((node) => node.outerHTML.slice(0, 90))"""
    assert page.evaluate(nameless) == []
    headings = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, h4')].map((node) => Number(node.localName[1]))"
    )
    assert headings[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    assert page.evaluate("document.documentElement.lang") == "en"


def test_the_readers_language_and_the_button(two: Path, open_page: Any) -> None:
    page = open_page(two, locale="zh-CN")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    assert "回合" in page.inner_text("nav")
    page.get_by_role("button", name="English").click()
    assert "Episodes" in page.inner_text("nav")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["narrow", "wide"])
def test_narrow_and_wide_light_and_dark(
    two: Path, open_page: Any, size: dict[str, int], scheme: str
) -> None:
    page = open_page(two, "#episode=t3&sample=0", viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    paper = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    )
    assert (paper > 128) == (scheme == "light")
    assert page.locator("#list").is_visible() == (size is LARGE)
    assert page.get_by_role("link", name="Back to the list").is_visible() == (size is SMALL)
    assert page.seen == []


def test_an_episode_of_another_part_is_found_there(
    tmp_path: Path, open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_page, "PAGE_EPISODES", 10)
    folder = evaluation(tmp_path / "e", [record(f"t{n}", 1.0) for n in range(30)])
    assert main([str(folder), "--all"]) == 0
    page = open_page(folder / "report.html")
    here = set(page.evaluate("window.report.episodes.map((one) => one.id)"))
    away = next(name for name in (f"t{n}" for n in range(30)) if name not in here)
    page = open_page(folder / "report.html", f"#episode={away}&sample=0")
    links = page.locator("#one a[href*=report]")
    assert links.count() == 3
    for number in range(3):
        page = open_page(folder / "report.html", f"#episode={away}&sample=0")
        page.locator("#one a[href*=report]").nth(number).click()
        page.wait_for_load_state()
        if page.locator("#one h3").count():
            assert page.inner_text("#one h3") == f"question {away}"
            return
    raise AssertionError(f"{away} is in no part")


@pytest.fixture(scope="module")
def one_step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training run of one step, with the messages of one of its episodes."""
    run = training_run(tmp_path_factory.mktemp("one") / "run", steps=1)
    call = {"name": "query_database_by_sql", "arguments": '{"sql": "SELECT 1"}'}
    said = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": call}]},
    ]
    write_lines(run / "episodes.jsonl", [rollout(1), rollout(1, reward=0.9, transcript=said)])
    metrics = {"episodes/reward/mean": 0.7, "episodes/terms/rule": 0.1}
    write_lines(run / "metrics.jsonl", [{"step": 1, "data": metrics}])
    assert main([str(run)]) == 0
    return run / "report.html"


def test_the_first_screen_answers_whether_it_got_better(two: Path, open_page: Any) -> None:
    page = open_page(two, viewport={"width": 1280, "height": 800})
    card = page.locator(".card").first
    assert card.locator(".verdict").inner_text() == "It got better."
    assert card.locator(".big").inner_text() == "50.0 → 100.0"
    assert "95 % interval" in card.inner_text()
    box = card.bounding_box()
    assert box["y"] + box["height"] < 800
    assert "exit" not in page.locator("#result").inner_text()


def test_one_step_is_a_table_and_no_chart_of_single_dots(one_step: Path, open_page: Any) -> None:
    page = open_page(one_step)
    assert page.locator("figure").count() == 0
    rows = page.locator("#curves tbody tr").all_inner_texts()
    assert rows[0].split() == ["reward", "0.7", "reward", "1"]


def test_a_chart_names_its_axes(two: Path, open_page: Any) -> None:
    chart = open_page(two).locator("figure svg").first
    assert {"reward", "step"} <= {*chart.locator("text").all_text_contents()}


def test_the_query_of_a_training_episode_is_seen_and_its_row_comes_first(
    one_step: Path, open_page: Any
) -> None:
    page = open_page(one_step)
    page.locator(f"{ROWS} a").first.click()
    piece = page.locator("#one .policy")
    assert piece.locator("pre").inner_text() == "SELECT 1"
    assert piece.locator(".keyword").inner_text() == "SELECT"


def test_what_is_cut_off_on_a_phone_scrolls_and_says_so(two: Path, open_page: Any) -> None:
    page = open_page(two, viewport=SMALL)
    page.wait_for_selector("#scores .cut:not([hidden])")
    tables = page.evaluate(
        """[...document.querySelectorAll('.scroll')].filter((box) => box.checkVisibility()).map((box) =>
            [box.scrollWidth > box.clientWidth + 1, !box.previousElementSibling.hidden])"""
    )
    assert {cut for cut, _ in tables} == {True, False}
    assert all(cut == told for cut, told in tables)
    assert open_page(two).locator("#differences .cut:visible").count() == 0


def test_numbers_stand_on_the_right_and_no_word_of_a_header_breaks(
    two: Path, open_page: Any
) -> None:
    page = open_page(two, viewport=SMALL)
    aligned = """[...document.querySelectorAll('#differences > .scroll tbody tr:first-child td')]
        .map((cell) => getComputedStyle(cell).textAlign)"""
    assert {*page.evaluate(aligned)} == {"end"}
    broken = """[...document.querySelectorAll('th')].filter((cell) => {
        const range = document.createRange();
        return [...cell.childNodes].some((text) => text.nodeType === 3 && [...text.data.matchAll(/\\w+/g)].some((word) => {
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            return new Set([...range.getClientRects()].map((box) => box.top)).size > 1;
        }));
    }).map((cell) => cell.textContent)"""
    assert page.evaluate(broken) == []


def test_the_page_is_chinese_where_it_says_so(two: Path, open_page: Any) -> None:
    page = open_page(two, "#episode=t3&sample=0", locale="zh-CN")
    seen = page.locator("body").inner_text()
    assert "变好了。" in seen
    assert "药品单项" in page.locator("#differences").inner_text()
    assert "已作答" in page.locator("#one").inner_text()
    for english in ("drug_field", "drug field", "It got", "answered", "too few"):
        assert english not in seen


CONTRAST = """(scheme) => {
    const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = (text) => rgb(text).map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const paper = getComputedStyle(document.body).backgroundColor;
    return [...document.querySelectorAll('button, input, select, .card, .pieces > li')].map((node) => {
        const [low, high] = [light(getComputedStyle(node).borderTopColor), light(paper)].sort();
        return (high + 0.05) / (low + 0.05);
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_borders_of_controls_are_seen(two: Path, open_page: Any, scheme: str) -> None:
    """WCAG 1.4.11: 3 to 1 against what is beside them."""
    page = open_page(two, "#episode=t3&sample=0", color_scheme=scheme)
    found = page.evaluate(CONTRAST, scheme)
    assert len(found) > 8
    assert min(found) >= 3
