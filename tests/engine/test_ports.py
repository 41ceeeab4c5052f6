"""A stranger on the machine of a run: all its ports are thrown bytes at, and asked for secrets."""

import contextlib
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.programs import python
from tests.runs import Run

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

PAGE = b"Host: x\r\nOrigin: http://a.page\r\n"
CALL = b'{"model": "policy-0", "messages": [{"role": "user", "content": "x"}]}'
BYTES = (
    b"GET / HTTP/1.1\r\n" + PAGE + b"\r\n",
    b"GET /health HTTP/1.1\r\n" + PAGE + b"\r\n",
    b"GET /v1/models HTTP/1.1\r\n" + PAGE + b"\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s"
    % (PAGE, len(CALL), CALL),
    b"POST /get_or_create_runtime_env HTTP/1.1\r\n" + PAGE + b"Content-Length: 3\r\n\r\nabc",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 64,
    b"\x16\x03\x01\x02\x00\x01\x00\x01",
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + bytes(48),  # ZeroMQ without a key
    bytes(range(256)) * 4096,
    b"",
)
# Ray's own counters, which no setting closes; they say how much memory and how many workers there
# are.
METRICS = re.compile(rb"^# (HELP|TYPE) \w+", re.MULTILINE)
# A socket of ZeroMQ greets everybody like this. With NULL it agrees to do without a key.
GREETING = b"\xff\0\0\0\0\0\0\0\x01\x7f"
WITHOUT_KEY = b"NULL"
SECONDS = 2.0
STEPS = 12  # enough for the visit to end before the run does


def ports(run: Run) -> set[tuple[str, int]]:
    """Address and port of every TCP socket that a process of the run listens on."""
    found = set()
    for process in run.alive():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            for one in process.net_connections("tcp"):
                if one.status == psutil.CONN_LISTEN:
                    found.add((one.laddr.ip.removeprefix("::ffff:"), one.laddr.port))
    return found


def answer(address: tuple[str, int], sent: bytes) -> bytes:
    """What a port says to these bytes, as far as it comes at once."""
    said = b""
    with contextlib.suppress(OSError), socket.create_connection(address, SECONDS) as connection:
        connection.settimeout(SECONDS)
        connection.sendall(sent)
        while part := connection.recv(2**16):
            said += part
    return said


@dataclass
class Visit:
    """A run that a stranger visited in its first step, and what was seen there."""

    run: Run
    code: int
    token: str
    said: dict[tuple[str, int], list[bytes]]
    shown: str
    session: Path
    asked_ray: dict[str, str]


@pytest.fixture(scope="module")
def visit(start):
    steps = (f"trainer.total_epochs={STEPS}", f"trainer.total_training_steps={STEPS}")
    run = start("--ci-fast", *steps, AGL_TOKEN="")
    run.wait_for(lambda run: run.text("episodes.jsonl"))
    processes = {process.name(): process for process in run.alive()}
    token = processes["raylet"].environ()["AGL_TOKEN"]
    told = " ".join(processes["gcs_server"].cmdline())
    session = Path(re.search(r"--log_dir=(\S+)/logs", told)[1])  # type: ignore[index]
    sockets = processes["gcs_server"].net_connections("tcp")
    gcs, *_ = [one.laddr.port for one in sockets if one.status == psutil.CONN_LISTEN]
    shown = "\n".join(" ".join(process.cmdline()) for process in run.alive())
    with ThreadPoolExecutor(64) as pool:  # silent ports take their time, and the run goes on
        tokens = {"own": token, "other": "0" * 64}
        asking = {name: pool.submit(ask_ray, gcs, value) for name, value in tokens.items()}
        found = sorted(ports(run))
        coming = {one: [pool.submit(answer, one, sent) for sent in BYTES] for one in found}
        said = {one: [answered.result() for answered in every] for one, every in coming.items()}
        asked = {name: answered.result() for name, answered in asking.items()}
    assert run.process.poll() is None, "the run ended before all was asked"
    return Visit(run, run.wait(), token, said, shown, session, asked)


ASK_RAY = """
import sys
from ray._raylet import GcsClient
print(len(GcsClient(address=f"127.0.0.1:{sys.argv[1]}").internal_kv_keys(b"", None, 10)))
"""


def ask_ray(port: int, token: str) -> str:
    """Return what Ray's memory says to this token: a number of keys, or an error's last line."""
    told = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    asked = python("-c", ASK_RAY, port, env=told)
    return (asked.stdout or asked.stderr).strip().splitlines()[-1]


def test_bytes_of_a_stranger_end_nothing(visit):
    assert visit.code == 0, visit.run.output
    assert len(visit.said) > 20
    assert len(visit.run.steps()) == STEPS
    assert "worker died" not in visit.run.output


def test_no_port_answers_a_stranger(visit):
    """With no more than that it refuses, and Ray's counters."""
    asked_for_a_token = set()
    for port, said in visit.said.items():
        for one in said:
            assert b"access-control" not in one.lower()
            if one.startswith(b"HTTP/") and not METRICS.search(one):
                status = int(one.split()[1])
                lives = status == 200 and b"content-length: 0\r\n" in one  # vLLM's health
                assert lives or status in (400, 401, 405), (port, one)
                asked_for_a_token |= {port} if status == 401 else set()
    assert len(asked_for_a_token) >= 3, "store, proxy and vLLM"


def test_no_socket_of_zeromq_hears_who_has_no_key(visit):
    """What it hears is unpickled, and so can run programs."""
    said = [one for port in visit.said.values() for one in port if one.startswith(GREETING)]
    assert said
    assert [one for one in said if WITHOUT_KEY in one] == []


def test_ray_asks_for_the_runs_token(visit):
    assert int(visit.asked_ray["own"]) > 0
    assert "uthenticat" in visit.asked_ray["other"]


def test_a_token_that_was_drawn_is_written_nowhere(visit):
    assert len(visit.token) > 40
    assert visit.token not in visit.shown
    assert visit.token not in visit.run.output
    paths = [*visit.run.run_dir.rglob("*"), *visit.session.rglob("*")]
    files = [path for path in paths if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if visit.token.encode() in path.read_bytes()] == []
