"""A company's proxy in the environment: a run's own servers are asked past it, others through it."""

import asyncio
from http.server import ThreadingHTTPServer
from threading import Thread

import pytest

from common.llm.endpoint import post, proxy_of
from common.llm.errors import LLMError
from common.proxies import EXCEPTIONS, NAMES, why_unusable
from tests.messages import missing
from tests.programs import python
from tests.serving import JsonHandler

DEAD_PROXY = "http://127.0.0.1:9"
BEFORE = "from common.command import run_command; run_command('a test', lambda: 0)\n"
CLIENTS = {
    "urllib": "import urllib.request; print(urllib.request.urlopen(URL).status)",
    "httpx": "import httpx; print(httpx.get(URL).status_code)",
    "our own": (
        "import asyncio; from common.llm.endpoint import post\n"
        "print(200 if asyncio.run(post(URL, {}, timeout=60)) else 'nothing')"
    ),
}


class Answer(JsonHandler):
    def do_GET(self) -> None:
        self.answer({"object": "list", "data": []})

    def do_POST(self) -> None:
        self.asked()
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.do_GET()


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.asked = []  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


@pytest.fixture
def proxied(monkeypatch):
    """The environment of a machine in a company's network, without any exception."""
    for name in (*NAMES, *EXCEPTIONS):
        monkeypatch.setenv(name, DEAD_PROXY if name in NAMES else "")
        monkeypatch.setenv(name.upper(), DEAD_PROXY if name in NAMES else "")


@pytest.mark.system
@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_reaches_this_machine_past_the_proxy(client, server, proxied):
    done = python("-c", f"{BEFORE}URL = {server!r}\n{CLIENTS[client]}")
    assert done.stdout.strip() == "200", done.stderr


@pytest.mark.parametrize(
    ("variable", "scheme"),
    [("http_proxy", "http://"), ("http_proxy", ""), ("ALL_PROXY", "http://")],
)
def test_a_model_elsewhere_is_asked_through_the_proxy(monkeypatch, variable, scheme):
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as proxy:
        proxy.asked = []  # type: ignore[attr-defined]
        Thread(target=proxy.serve_forever, daemon=True).start()
        for name in (*NAMES, *EXCEPTIONS):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.setenv(variable, f"{scheme}127.0.0.1:{proxy.server_address[1]}")
        proxy_of.cache_clear()
        asyncio.run(post("http://models.invalid/v1/x", {}, timeout=60))
        proxy.shutdown()
    proxy_of.cache_clear()
    assert proxy.asked == ["http://models.invalid/v1/x"]  # type: ignore[attr-defined]


def test_a_socks_proxy_that_nothing_here_speaks_is_named(proxied, monkeypatch):
    """A training ended in an ImportError, and check_install had said that all is well."""
    monkeypatch.setenv("http_proxy", "SOCKS5://me:secret@a:1")
    proxy_of.cache_clear()
    with pytest.raises(LLMError, match=r"http_proxy.* SOCKS"):
        asyncio.run(post("http://models.invalid/v1/x", {}, timeout=60))
    proxy_of.cache_clear()
    assert why_unusable({"HTTPS_PROXY": DEAD_PROXY}) == ""
    said = why_unusable({"all_proxy": "Socks5h://me:secret@a:1"})
    assert not missing(said, "all_proxy", "socksio")
    assert "secret" not in said
