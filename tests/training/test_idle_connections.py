"""Servers of a run with few files, and many connections that send no whole request.

Keeps of docs/safety.md, "Connections that wait".
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from uvicorn.config import HTTP_PROTOCOLS

from common import connections
from common.access import TOKEN, bearer
from common.settings import ROOT
from tests.training.conftest import own_port, served
from tests.training.test_proxy import StandInVllm, access, ask, servers  # noqa: F401 (a fixture)
from training.store.store_checks import HEALTH_PATH

HOST = "127.0.0.1"
FILES = 256
ATTEMPTS = 400
HALF = b"POST /v1/agl/waits/queue HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{"
MOST_OF_LOG = 20_000


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


def listens(base: str) -> bool:
    try:
        return httpx.get(base + HEALTH_PATH, timeout=None, trust_env=False).is_success
    except httpx.TransportError:
        return False


@pytest.mark.system
def test_half_open_requests_stop_no_store(tmp_path: Path) -> None:
    """400 of them at once, with 256 files: it answers, during it and afterwards."""
    port, log = own_port(), tmp_path / "log"
    base = f"http://{HOST}:{port}"
    command = [sys.executable, "-m", "training.store", "serve", "--port", str(port)]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*command, "--persist", str(tmp_path / "store")],
            cwd=ROOT,
            env={**os.environ, TOKEN: "s3cret"},
            stdout=output,
            stderr=output,
            preexec_fn=few_files,
        ) as store,
        ExitStack() as stack,
    ):
        stack.callback(store.terminate)
        while not listens(base):
            assert store.poll() is None, log.read_text()
            time.sleep(0.1)
        with client() as honest:
            half_open(port, lambda: answers(honest, base))
        with client() as newcomer:
            assert answers(newcomer, base)
        assert store.poll() is None
    assert log.stat().st_size < MOST_OF_LOG, log.read_text(errors="replace")[-2000:]


def client() -> httpx.Client:
    return httpx.Client(headers=bearer("s3cret"), timeout=None, trust_env=False)


def answers(asking: httpx.Client, base: str) -> bool:
    reply = asking.post(f"{base}/v1/agl/waits/queue", json={"seconds": 0})
    return reply.json() == {"queued": 0}


def half_open(port: int, answers: Callable[[], bool]) -> None:
    """Hold so many connections with half a request; meanwhile the store answers."""
    with ExitStack() as stack:
        for number in range(ATTEMPTS):
            one = stack.enter_context(socket.create_connection((HOST, port)))
            with suppress(OSError):  # it may have been dropped already
                one.sendall(HALF)
            assert number % 50 or answers()
        assert answers()


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_half_a_call_is_dropped_by_the_proxy(
    kind: str,
    servers: list[StandInVllm],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where nobody has made such connections the usual ones, as vLLM's middleware does."""
    monkeypatch.setitem(HTTP_PROTOCOLS, "auto", "uvicorn.protocols.http.auto:AutoHTTPProtocol")
    for name in ("HEADER_SECONDS", "BODY_SECONDS", "SECOND_LOOK"):
        monkeypatch.setattr(connections, name, 0.05)
    async with served(token="s3cret") as store:
        policy = access(kind, servers, store, store_token="s3cret")
        await policy.start()
        try:
            port = int(policy.address.rsplit(":", 1)[1])
            for said in (b"", HALF[:40], HALF):
                reader, writer = await asyncio.open_connection(HOST, port)
                writer.write(said)
                with suppress(ConnectionResetError):
                    assert b"200 OK" not in await asyncio.wait_for(reader.read(), 60)
                writer.close()
            rollout = await store.start_rollout(input={})
            assert (await ask(policy, store, 0, rollout, "一", key="s3cret")).status_code == 200
        finally:
            await policy.stop()
