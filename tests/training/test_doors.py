"""ZeroMQ sockets and vLLM's port in front of people who have no token, with real sockets."""

import multiprocessing
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
import zmq

from common.access import TOKEN, bearer
from training.proxy import doors
from training.proxy.doors import Door, ServedDoor, guard_sockets

# Milliseconds to wait for what is heard, which comes as soon as it can, and for what is not.
LONG, SHORT = 60_000, 1000


@pytest.fixture
def guarded(monkeypatch):
    """This process as Ray's worker of a run."""
    monkeypatch.setenv(TOKEN, "the-run's")
    monkeypatch.setattr(zmq.Socket, "bind", zmq.Socket.bind)  # put back at the end
    monkeypatch.setattr(zmq.Socket, "connect", zmq.Socket.connect)
    guard_sockets()
    return


def send(port: int, token: str | None, patience: int) -> None:
    """What a process does that has this token, or none and no guard either."""
    if token:
        os.environ[TOKEN] = token
        guard_sockets()
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = patience
        socket.connect(f"tcp://127.0.0.1:{port}")
        socket.send(f"from {token}".encode())


@pytest.mark.system
@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("token", ["the-run's", "another", None])
def test_a_socket_hears_those_who_have_the_token(token):
    heard = token == "the-run's"
    patience = LONG if heard else SHORT
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        spawn = multiprocessing.get_context("spawn")
        sender = spawn.Process(target=send, args=(port, token, patience))
        sender.start()
        sender.join()
        assert sender.exitcode == 0
        assert bool(socket.poll(patience)) == heard
        if heard:
            assert socket.recv_multipart()[1] == b"from the-run's"


def client_of(door: Callable[[Any], Any], asked: list[str]) -> httpx.AsyncClient:
    """A client of vLLM behind this door; `asked` gets the paths that reach it."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    return httpx.AsyncClient(transport=httpx.ASGITransport(door(app)), base_url="http://vllm")


async def test_vllm_answers_completions_to_who_has_the_token(monkeypatch):
    monkeypatch.setenv(TOKEN, "the-run's")
    asked = list[str]()
    async with client_of(Door, asked) as client:
        for method, path, statuses in (
            ("GET", "/health", [200, 200, 200]),
            ("GET", "/v1/models", [401, 401, 404]),
            ("GET", "/metrics", [401, 401, 404]),
            ("POST", "/v1/load_lora_adapter", [401, 401, 404]),
            ("POST", "/tokenize", [401, 401, 404]),
            ("POST", "/v1/chat/completions", [401, 401, 200]),
        ):
            found = []
            for token in (None, "another", "the-run's"):
                sent = {"content": b"{}", "headers": bearer(token)}
                found.append((await client.request(method, path, **sent)).status_code)
            assert found == statuses, path
    assert set(asked) == {"/health", "/v1/chat/completions"}


async def test_vllm_outside_of_training_answers_completions_alone():
    async with client_of(ServedDoor, []) as client:
        for method, path, status in (
            ("GET", "/health", 200),
            ("GET", "/v1/models", 200),
            ("POST", "/v1/completions", 200),
            ("POST", "/v1/chat/completions", 200),
            ("POST", "/v1/load_lora_adapter", 404),
            ("OPTIONS", "/v1/chat/completions", 404),
            ("GET", "/metrics", 404),
        ):
            assert (await client.request(method, path, content=b"{}")).status_code == status, path


def test_each_run_of_a_ray_that_several_joined_finds_its_own_token(monkeypatch):
    kept: dict[bytes, bytes] = {}
    monkeypatch.setattr("ray.experimental.internal_kv._internal_kv_put", kept.__setitem__)
    monkeypatch.setattr("ray.experimental.internal_kv._internal_kv_get", kept.__getitem__)

    def of_job(number: str) -> None:
        job = SimpleNamespace(get_job_id=lambda: number)
        monkeypatch.setattr("ray.get_runtime_context", lambda: job)

    for number in ("01", "02"):
        of_job(number)
        doors.keep_in_ray(f"token of {number}")
    monkeypatch.setenv(TOKEN, "")
    of_job("01")
    assert doors.run_token() == "token of 01"


def test_a_server_that_vllm_makes_has_no_web_sockets():
    config = uvicorn.Config(ServedDoor(None))
    config.load()
    assert config.ws_protocol_class is None
