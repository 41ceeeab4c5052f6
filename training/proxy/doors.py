"""Keep strangers out of the ports that verl, vLLM and TransferQueue open, by the run's token.

ZeroMQ's messages are unpickled, and it asks for no identity. Here both ends of a TCP connection use
CURVE with a key pair made from the token.
"""

import hashlib
import os
from functools import cache
from typing import Any

import zmq
from uvicorn.config import HTTP_PROTOCOLS, WS_PROTOCOLS
from zmq.utils import z85

from common import connections
from common.access import TOKEN, Guard

KEPT = b"medical-agent-rl-token-"  # in the Ray that was joined, beside the id of the run's job
MOST_BYTES = 32 * 2**20
SERVED = {("POST", "/v1/chat/completions"), ("GET", "/health")}
BESIDE = {("POST", "/v1/completions"), ("GET", "/v1/models")}

# vLLM and verl make their servers themselves. Nothing here speaks by web sockets
HTTP_PROTOCOLS["auto"] = connections.NAME
WS_PROTOCOLS["auto"] = WS_PROTOCOLS["none"]

_Socket: Any = zmq.Socket
_bind = _Socket.bind
_connect = _Socket.connect


def run_token() -> str:
    """Return the run's token: inherited, or kept by the Ray that the run joined."""
    if not os.environ.get(TOKEN):
        from ray.experimental.internal_kv import _internal_kv_get

        os.environ[TOKEN] = _internal_kv_get(_kept_under()).decode()
    return os.environ[TOKEN]


def keep_in_ray(token: str) -> None:
    """Leave the token where workers on other machines find it: in the joined Ray."""
    from ray.experimental.internal_kv import _internal_kv_put

    _internal_kv_put(_kept_under(), token.encode())


def _kept_under() -> bytes:
    import ray

    return KEPT + ray.get_runtime_context().get_job_id().encode()


def guard_sockets() -> None:
    """Make this process's ZeroMQ TCP sockets talk only to those that have the token."""

    def bind(socket: zmq.Socket[Any], address: str) -> Any:
        if address.startswith("tcp://"):
            _take_keys(socket)
            socket.setsockopt(zmq.CURVE_SERVER, 1)
        return _bind(socket, address)

    def connect(socket: zmq.Socket[Any], address: str) -> Any:
        if address.startswith("tcp://"):
            socket.setsockopt(zmq.CURVE_SERVERKEY, _take_keys(socket))
        return _connect(socket, address)

    _Socket.bind = bind
    _Socket.connect = connect


def _take_keys(socket: zmq.Socket[Any]) -> bytes:
    secret, public = keys(run_token())
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
    return public


@cache
def keys(token: str) -> tuple[bytes, bytes]:
    """Return CURVE's secret and public key of a token, in ZeroMQ's base-85 encoding."""
    secret = z85.encode(hashlib.sha256(b"zeromq " + token.encode()).digest())
    return secret, zmq.curve_public(secret)


class Door(Guard):
    """vLLM's middleware in a run: completions with the token, for others a health check."""

    def __init__(self, app: Any) -> None:
        super().__init__(
            app,
            run_token(),
            MOST_BYTES,
            free=["/health"],
            serves=lambda method, path: (method, path) in SERVED,
        )


class ServedDoor(Guard):
    """vLLM's middleware outside of training: completions and little else.

    Other routes load adapters from any folder, count, and translate tokens.
    """

    def __init__(self, app: Any) -> None:
        super().__init__(
            app, None, MOST_BYTES, serves=lambda method, path: (method, path) in SERVED | BESIDE
        )
