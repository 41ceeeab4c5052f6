"""Store, runners and trainer as three processes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from common.access import bearer
from tests.runs import ROOT, free_port
from training.engine.actor import TRACKERS
from training.setup.plan import ConfigError
from training.store.store_checks import check_external

pytestmark = pytest.mark.engine


TOKEN = "canary-of-the-token"


class Store:
    """A store kept in a folder, served by a process that can be killed and started again on the
    same port.
    """

    def __init__(self, folder: Path) -> None:
        self.port, self.folder = free_port(), folder
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [
            "-m",
            "training.store",
            "serve",
            "--port",
            str(self.port),
            "--persist",
            str(self.folder),
        ]
        self.process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env={**os.environ, "AGL_TOKEN": TOKEN}
        )

    def wait_until_healthy(self) -> None:
        end = time.time() + 60
        while True:
            try:
                return check_external(self.address, TOKEN)
            except ConfigError:
                assert time.time() < end
                time.sleep(0.5)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def ended(self) -> int:
        """How many rollouts have ended."""
        asked = {"status_in": ["succeeded"], "limit": 1}
        url = f"{self.address}/v1/agl/rollouts/search"
        return int(
            httpx.post(url, json=asked, headers=bearer(TOKEN), trust_env=False).json()["total"]
        )


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    try:
        store.wait_until_healthy()
        yield store
        store.process.send_signal(signal.SIGINT)
        assert store.process.wait(timeout=20) in (0, 130)
    finally:
        store.kill()


@pytest.fixture
def spaced_model(tmp_path):
    """The bundled model, whose template writes a tool call with a space that the model leaves out."""
    folder = tmp_path / "spaced"
    shutil.copytree(ROOT / "sql_agent/tiny_model", folder)
    template = folder / "chat_template.jinja"
    written = template.read_text(encoding="utf-8")
    spaced = written.replace("'}\\n</tool_call>'", "' }\\n</tool_call>'")
    assert spaced != written
    template.write_text(spaced, encoding="utf-8")
    return folder


def test_three_processes(store, spaced_model, start):
    """With a token; and the store is killed in the middle, and started again. Each episode is one
    sequence, although the template writes its calls otherwise.
    """
    external = ("--ci-fast", "--llm-proxy", "--external-store-address", store.address)
    external += ("--model", str(spaced_model))
    told = {"AGL_MANAGED_STORE": "0", "AGL_TOKEN": TOKEN}
    runners = start(*external, "--n-runners", "2", AGL_CURRENT_ROLE="runner", **told)
    trackers = {"SWANLAB_MODE": "local", "WANDB_MODE": "offline"}
    listed = "trainer.logger=[console,file,tensorboard,swanlab,wandb]"
    trainer = start(*external, listed, AGL_CURRENT_ROLE="algorithm", **told, **trackers)
    trainer.wait_for(lambda _: store.ended() >= 4)
    store.kill()
    store.start()
    assert trainer.wait() == 0, trainer.output
    summary = trainer.summary()
    assert summary["store"] == "external"
    assert summary["rollouts"]["finished"] == summary["sequences"] == 32
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    assert runners.process.poll() is None, "runners stay for the next trainer"
    os.killpg(runners.process.pid, signal.SIGINT)
    assert runners.wait() == 130
    assert runners.alive() == []
    assert trainer.alive() == []
    written = [list((trainer.run_dir / "trackers" / name).rglob("*")) for name in TRACKERS]
    assert all(written)
    left = [
        path
        for folder in (trainer.run_dir, runners.run_dir, store.folder)
        for path in folder.rglob("*")
    ]
    assert [path for path in left if path.is_file() and TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN not in trainer.output + runners.output
