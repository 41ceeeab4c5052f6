"""A store that is served asks no address outside when it starts, nor later: it may stand where
nothing else is reached.
"""

import os
import subprocess
import sys
import time

import httpx
import pytest

from common.settings import ROOT
from tests.training.conftest import own_port
from training.store.store_checks import HEALTH_PATH

pytestmark = pytest.mark.system
PROGRAM = """
import sys
LOCAL = ("127.", "localhost", "::1")
def look(event, given):
    if event == "socket.getaddrinfo" and given[0] and not str(given[0]).startswith(LOCAL):
        print("asked for", given[0], file=sys.stderr, flush=True)
sys.addaudithook(look)
from training.store.store_server import main
sys.exit(main(["serve", "--port", sys.argv[1]]))
"""


def test_a_served_store_asks_no_address_outside() -> None:
    port = own_port()
    command = [sys.executable, "-c", PROGRAM, str(port)]
    env = os.environ | {"AGL_TOKEN": "of-this-test"}
    served = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 120
        while True:
            try:
                found = httpx.get(f"http://127.0.0.1:{port}{HEALTH_PATH}", trust_env=False)
                break
            except httpx.HTTPError:
                assert served.poll() is None, served.stderr and served.stderr.read()
                assert time.monotonic() < end, "no store within two minutes"
                time.sleep(0.2)
        assert found.status_code == 200
    finally:
        served.terminate()
        _, said = served.communicate(timeout=60)
    assert "asked for" not in said, said
