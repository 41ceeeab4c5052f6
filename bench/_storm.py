"""Send malformed requests by the thousand to a real server over HTTP: no JSON, wrong types, wrong
tokens, no such route, too long, and no HTTP at all.
"""

import asyncio
import random
from collections.abc import Callable

import aiohttp
from yarl import URL

from common.access import bearer

TOKEN = "s3cret-of-the-server"
AT_ONCE = 16
SHARES = {"body": 70, "token": 15, "route": 10, "raw": 4, "size": 1}
KINDS = ("application/json", "application/json", "application/x-protobuf", "text/plain", "é")
chance = random.Random(20)

# Bodies that are no request of any route: no JSON, JSON that Python alone would read, and values of
# wrong types.
BODIES: list[Callable[[], bytes]] = [
    lambda: b"\xff" + words(),
    lambda: b'{"input": ' + words(),
    lambda: b"[" * chance.choice([1, 2000, 100_000]),
    lambda: (
        b'{"rollouts": [{"input": NaN}], "input": NaN, "resources": NaN, "heartbeat_stats": {"a": NaN}}'
    ),
    lambda: (
        b'{"rollouts": [{"input": "\\ud800"}], "input": "\\ud800", "heartbeat_stats": {"a": "\\udfff"}}'
    ),
    lambda: (
        b'{"rollouts": [{"input": 1}], "input": 1, "limit": 1e999, "seconds": 1e999, "x": 1e999}'
    ),
    lambda: chance.choice([b"3", b"[]", b'"x"', b"true", b"[null]", b"-0.5"]),
    lambda: (
        b'{"limit": "x", "worker_id": 7, "rollouts": 3, "status": 5, "heartbeat_stats": 3, "config": 7, '
        b'"last_heartbeat_time": "x", "metadata": 4, "rollout_id": [], "rollout_ids": 5, "seconds": "x", "mode": "x"}'
    ),
    lambda: (
        b'{"rollouts": [{}], "sort_order": 1, "limit": {}, "status": "no such", "worker_id": {}, '
        b'"heartbeat_stats": [], "metadata": [], "rollout_id": null, "rollout_ids": {}, "config": {"max_attempts": 0}}'
    ),
]
RAW = (
    b"\x16\x03\x01\x02\x00\x01\x00",  # somebody who expects TLS
    b"GET\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
)

Answer = tuple[
    str, str, int
]  # what was wrong (of SHARES), the path, the status (0: closed without one)


def words() -> bytes:
    return chance.randbytes(chance.randrange(1, 60))


async def storm(
    address: str, number: int, route: Callable[[], str], most_bytes: int
) -> list[Answer]:
    """Send the same requests every time, to a server that has TOKEN and reads at most so many
    bytes.
    """
    chance.seed(20)
    wrongs = chance.choices(list(SHARES), list(SHARES.values()), k=number)
    drawn, answers = (
        iter([(wrong, *draw(wrong, route(), most_bytes)) for wrong in wrongs]),
        list[Answer](),
    )

    async def send(client: aiohttp.ClientSession) -> None:
        for wrong, path, body, headers in drawn:
            asked = (
                raw(address, body)
                if wrong == "raw"
                else post(client, address + path, body, headers)
            )
            answers.append((wrong, path, await asked))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as client:
        await asyncio.gather(*(send(client) for _ in range(AT_ONCE)))
    return answers


def draw(wrong: str, path: str, most_bytes: int) -> tuple[str, bytes, dict[str, str]]:
    body, token = b"{}", TOKEN
    if wrong == "body":
        body = chance.choice(BODIES)()
    elif wrong == "token":
        token = chance.choice(["", "wrong", TOKEN[:-1], TOKEN + "x"])
    elif wrong == "route":
        path = f"/{chance.randbytes(8).hex()}/{chance.choice(['', '%00', '../..', 'x' * 5000])}"
    elif wrong == "size":
        body = b" " * most_bytes + body
    else:
        body = chance.choice(RAW)
    return path, body, {"content-type": chance.choice(KINDS), **bearer(token)}


async def post(
    client: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]
) -> int:
    try:
        async with client.post(URL(url, encoded=True), data=body, headers=headers) as answer:
            await answer.read()
            return answer.status
    except (
        aiohttp.ClientOSError,
        aiohttp.ServerDisconnectedError,
    ):  # refused before all of the body was sent
        return 0


async def raw(address: str, text: bytes) -> int:
    reader, writer = await asyncio.open_connection(URL(address).host, URL(address).port)
    try:
        writer.write(text)
        writer.write_eof()
        line = (await reader.readline()).split()
        return int(line[1]) if line else 0
    finally:
        writer.close()
