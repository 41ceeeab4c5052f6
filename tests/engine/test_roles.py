"""Store, runners and trainer as three processes."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.runs import ROOT, free_port
from tests.stores import wait_for_store
from training.engine.actor import TRACKERS

pytestmark = pytest.mark.engine


TOKEN = "canary-of-the-token"


@pytest.fixture
def store():
    """The address of a store that a process of its own serves."""
    port = free_port()
    command = [sys.executable, "-m", "training.store", "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "AGL_TOKEN": TOKEN})
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for_store(address, TOKEN)
        yield address
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) in (0, 130)
    finally:
        process.kill()


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
    """With a token. Each episode is one sequence, although the template writes its calls otherwise."""
    external = ("--ci-fast", "--llm-proxy", "--external-store-address", store)
    external += ("--model", str(spaced_model))
    told = {"AGL_MANAGED_STORE": "0", "AGL_TOKEN": TOKEN}
    runners = start(*external, "--n-runners", "2", AGL_CURRENT_ROLE="runner", **told)
    trackers = {"SWANLAB_MODE": "local", "WANDB_MODE": "offline"}
    listed = "trainer.logger=[console,file,tensorboard,swanlab,wandb]"
    trainer = start(*external, listed, AGL_CURRENT_ROLE="algorithm", **told, **trackers)
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
    left = [*trainer.run_dir.rglob("*"), *runners.run_dir.rglob("*")]
    assert [path for path in left if path.is_file() and TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN not in trainer.output + runners.output
