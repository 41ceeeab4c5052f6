"""The scripted endpoint, the small database, a served agent and a real browser."""

import shutil
import subprocess
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from tests.corpora import cases_of
from tests.episodes.conftest import database_url, llm  # noqa: F401
from tests.evaluation.visiting import served
from tests.sql_agent.curation.conftest import no_waiting  # noqa: F401

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture
def data(tmp_path, database_url, monkeypatch):  # noqa: F811
    """A question file for the small database, and settings that know no other place."""
    path = tmp_path / "questions.parquet"
    parquet.write_table(pa.Table.from_pylist(cases_of(__file__, "questions")), path)
    for name in ("TEACHER_MODEL", "REWARD_MODEL_URL", "SECOND_JUDGE_MODEL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("DATABASE_URL", database_url)
    return path


@pytest.fixture(scope="module")
def browser():
    """Chromium; what asks for it is skipped, saying so, where there is none or no playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    from playwright._impl._driver import compute_driver_executable

    node, *_ = compute_driver_executable()
    tried = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"playwright's driver does not start: {tried.stderr.strip()}")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def sql(llm, database_url):  # noqa: F811
    """The address of the served SQL agent."""
    with served("sql", llm.base_url, database_url=database_url) as (address, _):
        yield address


@pytest.fixture
def visit(browser):
    """Open the page of a served agent, which asks no other address for anything and never fails."""
    opened: list[Any] = []
    own = ["data:"]
    seen: list[str] = []

    def open_page(address: str, wait: bool = True, **options: Any) -> Any:
        context = browser.new_context(**{"locale": "en-US", **options})
        opened.append(context)
        own.append(address)
        page = context.new_page()
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on("request", lambda asked: seen.append(asked.url))
        page.goto(address)
        if wait:
            page.wait_for_selector("option[value=random]", state="attached")
        return page

    yield open_page
    for context in opened:
        context.close()
    assert [url for url in seen if not url.startswith(tuple(own))] == []
