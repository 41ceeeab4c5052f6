"""The scripted endpoint, the small database and a real browser."""

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.episodes.conftest import database_url, llm  # noqa: F401
from tests.utils.conftest import no_waiting  # noqa: F401

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
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
