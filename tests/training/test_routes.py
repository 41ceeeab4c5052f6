"""What passes to an app with hundreds of routes: every one of litellm's is asked for.

Keeps of docs/safety.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import httpx
import pytest

from common.access import bearer
from tests.training.conftest import served
from tests.training.test_proxy import StandInVllm, access, servers  # noqa: F401 (a fixture)
from tests.training.test_strangers import TOKEN, filled
from training.proxy.direct import HEALTH

LITELLM = """
import json, sys
from litellm.proxy.proxy_server import app
print(json.dumps([
    [method, route.path]
    for route in app.routes
    for method in sorted(getattr(route, "methods", None) or {"GET", "POST"})
]))
"""


@pytest.fixture(scope="module")
def litellms_routes() -> list[tuple[str, str]]:
    """Method and path of every route of litellm's proxy, as it is installed."""
    told = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    printed = subprocess.run(
        [sys.executable, "-c", LITELLM], check=True, capture_output=True, text=True, env=told
    )
    return [(method, path) for method, path in json.loads(printed.stdout.splitlines()[-1])]


@pytest.mark.system
@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_proxy_has_two_routes(
    kind: str,
    servers: list[StandInVllm],  # noqa: F811
    litellms_routes: list[tuple[str, str]],
) -> None:
    """Whoever has the token asks for litellm's routes, as they are and behind a rollout; so does
    whoever has not.
    """
    assert len(litellms_routes) > 300
    assert any(path.startswith("/v1/chat/completions") for _, path in litellms_routes)
    async with served(token=TOKEN) as store:
        policy = access(kind, servers, store, store_token=TOKEN)
        await policy.start()
        head = {**bearer(TOKEN), "origin": "http://a.page"}
        body = {"transport": "stdio", "server_name": "x", "command": "false", "args": []}
        found, browsers = [], []
        try:
            async with httpx.AsyncClient(base_url=policy.address, trust_env=False) as client:
                for method, path in [*litellms_routes, ("POST", "/mcp-rest/test/connection")]:
                    for before in ("", "/rollout/a/attempt/b"):
                        url = before + filled(path, "x")
                        with_token = await client.request(method, url, json=body, headers=head)
                        without = await client.request(method, url, json=body)
                        found.append((method, url, with_token.status_code, without.status_code))
                        browsers += [name for name in with_token.headers if "allow-" in name]
                asked = {"origin": "http://a.page", "access-control-request-method": "POST"}
                preflight = await client.options(
                    "/rollout/a/attempt/b/v1/chat/completions", headers=asked
                )
        finally:
            await policy.stop()
    passed = {(method, url) for method, url, with_token, _ in found if with_token != 404}
    calls = {f"/rollout/a/attempt/b{part}/chat/completions" for part in ("", "/v1")}
    assert passed == {("GET", HEALTH), *(("POST", url) for url in calls)}
    assert {url for _, url, _, without in found if without != 401} == {HEALTH}
    assert preflight.status_code == 401
    assert [name for name in [*browsers, *preflight.headers] if "access-control" in name] == []
    assert servers[0].requests == servers[1].requests == []


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_call_that_is_no_json_or_says_where_it_goes_is_refused(
    kind: str,
    servers: list[StandInVllm],  # noqa: F811
) -> None:
    call = b'{"model": "policy-0", "messages": [{"role": "user", "content": "x"}]'
    bodies = [
        call + b', "temperature": NaN}',
        call.replace(b'"x"', b'"\\ud800"') + b"}",
        call + b', "api_base": "http://127.0.0.1:1"}',
        b'["model"]',
    ]
    async with served(token=TOKEN) as store:
        policy = access(kind, servers, store, store_token=TOKEN)
        await policy.start()
        try:
            url = policy.address + "/rollout/a/attempt/b/v1/chat/completions"
            async with httpx.AsyncClient(trust_env=False) as client:
                for body in bodies:
                    answer = await client.post(url, content=body, headers=bearer(TOKEN))
                    assert answer.status_code == 400, body
        finally:
            await policy.stop()
    assert servers[0].requests == servers[1].requests == []
