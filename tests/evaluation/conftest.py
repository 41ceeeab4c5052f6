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
LARGE = {"width": 1400, "height": 900}


@pytest.fixture(autouse=True)
def no_judge(monkeypatch):
    """No judge but the offline one."""
    for name in ("TEACHER_MODEL", "REWARD_MODEL_URL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "")


@pytest.fixture
def data(tmp_path, database_url, monkeypatch):  # noqa: F811
    """A question file for the small database."""
    path = tmp_path / "questions.parquet"
    parquet.write_table(pa.Table.from_pylist(cases_of(__file__, "questions")), path)
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
def open_page(browser):
    """Open an address. `page.seen` is what failed, and what was asked of other addresses."""
    contexts = []

    def opened(address: str, own: tuple[str, ...] = ("file:",), **how: Any) -> Any:
        context = browser.new_context(**{"viewport": LARGE, "locale": "en-US", **how})
        contexts.append(context)
        page = context.new_page()
        page.seen = []
        page.on("pageerror", lambda error: page.seen.append(f"raised {error}"))
        page.on("console", lambda said: page.seen.append(f"{said.type} {said.text}"))
        page.on("dialog", lambda dialog: (page.seen.append("dialog"), dialog.dismiss()))
        page.on("request", lambda asked: asked.url.startswith(own) or page.seen.append(asked.url))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def visit(open_page):
    """Open the page of a served agent, which asks no other address for anything and never fails."""
    pages = []

    def visited(address: str, **how: Any) -> Any:
        pages.append(open_page(address, (address, "data:"), **how))
        pages[-1].wait_for_selector("option[value=random]", state="attached")
        return pages[-1]

    yield visited
    for page in pages:
        assert not [one for one in page.seen if one.startswith(("raised", "http"))]
