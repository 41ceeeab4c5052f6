"""Keys appear nowhere: a store, a runner and a proxy work with planted ones and are searched."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from agentlightning.types import EnqueueRolloutRequest

from common.settings import ROOT
from episodes import registry
from episodes.joint import JOINED
from sql_agent.agent import AGENT
from sql_agent.judge_words import WORDS
from tests.common.llm_server import Fault, LLMServer
from tests.serving import serving
from tests.stores import wait_for_store
from tests.training.conftest import own_port
from tests.training.test_proxy import StandInVllm, access, servers  # noqa: F401 (a fixture)
from tests.training.test_runner import ends
from training.store.store_client import StoreClient

FIELDS = registry.get(JOINED.join(registry.names())).settings.model_fields
NAMES = [name.upper() for name in FIELDS if "SecretStr" in str(FIELDS[name].annotation)]
SECRETS = {name: f"canary-of-{name.lower()}-0123" for name in [*NAMES, "HF_TOKEN"]}
pytestmark = pytest.mark.system
TOKEN, TEACHER = SECRETS["AGL_TOKEN"], SECRETS["TEACHER_API_KEY"]


class Started:
    """Programs with the planted keys in their environment, and the files they write."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, list[subprocess.Popen[bytes]]()

    def start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"output-{len(self.processes)}.txt").open("wb") as output:
            off = {"WANDB_MODE": "disabled", "SWANLAB_MODE": "disabled"}
            how = {"env": {**os.environ, **SECRETS, **off, **environment}, "cwd": ROOT}
            command = [sys.executable, *words]
            self.processes.append(subprocess.Popen(command, stdout=output, stderr=output, **how))
        return self.processes[-1]

    def alive(self) -> list[psutil.Process]:
        """Return those that still run, each before its children."""
        found = []
        for process in self.processes:
            if process.poll() is None:
                one = psutil.Process(process.pid)
                found += [one, *one.children(recursive=True)]
        return found

    def command_lines(self) -> str:
        """As `ps` shows them."""
        return str([one.cmdline() for one in self.alive()])


@pytest.fixture
def programs(tmp_path):
    started = Started(tmp_path)
    yield started
    for process in started.alive():
        process.kill()
    for process in started.processes:
        process.wait()


complete = StandInVllm.complete


def in_prose(self: StandInVllm, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """An answer that the judge has to read."""
    status, reply = complete(self, request)
    prose = "该药用于治疗感冒，每次一片，每日三次，密封保存，孕妇慎用。"
    reply["choices"][0]["message"]["content"] = prose
    return status, reply


@pytest.mark.timeout(600)
async def test_keys_appear_nowhere(programs, servers, tmp_path, caplog, monkeypatch):  # noqa: F811
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(StandInVllm, "complete", in_prose)
    port, teacher = own_port(), LLMServer()
    teacher.answer = lambda body: json.dumps(dict.fromkeys(WORDS.weights, 0.5))
    address = f"http://127.0.0.1:{port}"
    programs.start("-m", "training.store", "serve", "--port", str(port))
    await asyncio.to_thread(wait_for_store, address, TOKEN)
    external = ("--ci-fast", "--device", "cpu", "--llm-proxy", "--external-store-address", address)
    told = {"TEACHER_MODEL": "openai/judge", "TEACHER_BASE_URL": teacher.url}
    told |= {"JUDGE_TIMEOUT": "2", "JUDGE_CHECK": "0"}
    roles = {"AGL_MANAGED_STORE": "0", "AGL_CURRENT_ROLE": "runner"}
    with serving(teacher):
        run_dir = ("--run-dir", str(tmp_path / "run"))
        flags = (*external, *run_dir, "--n-runners", "1")
        programs.start("train_sql_agent.py", *flags, **roles, **told)
        store = StoreClient(address, TOKEN)
        policy = access("direct", servers, store, store_token=TOKEN)
        await policy.start()
        try:
            await play(policy, store, 4)
            down = json.dumps({"error": {"message": f"down, {TEACHER}"}})
            teacher.faults = [Fault(500, body=down)] * 100
            ids = await play(policy, store, 4)
            shown = programs.command_lines()
            spans = [str(await store.query_spans(rollout_id)) for rollout_id in ids]
            known = [str(await store.query_resources()), str(await store.query_workers())]
        finally:
            await policy.stop()
            await store.close()
    for process in reversed(programs.processes[:2]):  # the runner before its store
        process.send_signal(signal.SIGINT)
        await asyncio.to_thread(process.wait, 120)
    assert teacher.keys == {f"Bearer {TEACHER}"}
    assert all('"unscored"' in text for text in spans)
    texts = {"ps": shown, "spans": str(spans), "store": str(known), "log": caplog.text}
    for path in tmp_path.rglob("*"):
        if path.is_file():
            texts[str(path)] = path.read_bytes().decode(errors="replace")
    for secret in SECRETS.values():
        assert [where for where, text in texts.items() if secret in text] == [], secret


async def play(policy: Any, store: StoreClient, number: int) -> list[str]:
    """Have the runner play rollouts, to their ends; returns their ids."""
    told = {"mode": "train", "resources_id": policy.resource("train", 0)}
    rows = AGENT.rows(AGENT.splits["val"])[:number]
    requests = [EnqueueRolloutRequest(input=row, **told) for row in rows]
    ids = [rollout.rollout_id for rollout in await store.enqueue_many_rollouts(requests)]
    assert {rollout.status for rollout in await ends(store, ids, 240)} == {"succeeded"}
    return ids
