"""Programs that try to get out, to last, to reach a neighbour or to stop the machine:
corpus/README.md.

docs/safety.md promises that none does. One of each kind is played in every run, all of them
nightly.
"""

import asyncio
import json
import re
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from tools.sandbox import MachineTooSlowError, Run, Sandbox

pytestmark = pytest.mark.system

CORPUS = Path(__file__).parent / "corpus"
DEADLINE = 6.0
HANGS = 60.0  # seconds; how soon a runaway is gone is measured by bench.sandbox, on a quiet machine
AT_ONCE = 4
MOST = 65536
VARIABLE, SECRET = "PLANTED_KEY", "k7-planted-9f31c2"
Attack = dict[str, Any]


def attacks() -> dict[str, list[Attack]]:
    """By kind, those first that end by themselves; of the open file and of the sealed one in turn."""
    files = [
        (CORPUS / f"attacks{part}.jsonl").read_text(encoding="utf-8").splitlines()
        for part in ("", "_sealed")
    ]
    found: dict[str, list[Attack]] = {}
    for line in (line for lines in files for line in lines):
        attack = json.loads(line)
        found.setdefault(attack["kind"], []).append(attack)
    for those in found.values():
        those.sort(key=lambda attack: (attack["timeout_expected"], attack["id"]))
    return found


ATTACKS = attacks()
FIRST = [pytest.param(kind, those[:1], id=kind) for kind, those in ATTACKS.items()]
OTHERS = [
    pytest.param(kind, those[1:], id=f"{kind}-others", marks=pytest.mark.nightly)
    for kind, those in ATTACKS.items()
]


@dataclass
class Machine:
    """What an attack may look for: a file, an environment and a port of the host."""

    secret_file: Path
    port: int
    pid: int

    def filled(self, text: str) -> str:
        planted = {
            "repo": ROOT,
            "secret_file": self.secret_file,
            "port": self.port,
            "pid": self.pid,
        }
        for name, value in {**planted, "env_name": VARIABLE}.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, SECRET)
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(["sleep", "600"]) as host,
    ):
        yield Machine(folder / "secret.txt", server.getsockname()[1], host.pid)
        assert host.poll() is None, "a process of the host was ended"
        host.kill()


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(("kind", "those"), [*FIRST, *OTHERS])
async def test_no_attack_gets_anywhere(kind, those, machine):
    sandbox, problems, turn = Sandbox(), list[str](), asyncio.Semaphore(AT_ONCE)

    async def play(attack: Attack) -> None:
        async with turn:
            problems.extend(
                f"{attack['id']}: {problem}" for problem in await tried(sandbox, attack, machine)
            )

    try:
        await asyncio.gather(*map(play, those))
    finally:
        await sandbox.close()
    assert not problems, "\n".join(problems)
    assert [path.name for path in machine.secret_file.parent.iterdir()] == ["secret.txt"]
    assert machine.secret_file.read_text() == SECRET


async def tried(sandbox: Sandbox, attack: Attack, machine: Machine) -> list[str]:
    """What an attack achieved that it should not have."""
    name = attack["id"]

    async def neighbour(wait: float) -> Run | None:
        await asyncio.sleep(wait)
        return await sandbox.run(
            machine.filled(attack["neighbour"]), f"{name} neighbour", deadline=DEADLINE
        )

    for program in attack.get("setup") or []:
        await sandbox.run(machine.filled(program), name, deadline=DEADLINE)
    beside = (
        asyncio.create_task(neighbour(1.0)) if attack.get("neighbour_when") == "during" else None
    )
    try:
        run = await sandbox.run(
            machine.filled(attack["code"]), name, attack["language"], deadline=DEADLINE
        )
    except MachineTooSlowError:  # an endless one on a machine with other things to do
        run = Run("timeout", "", 0.0)
    if beside is None and attack.get("neighbour"):
        beside = asyncio.create_task(neighbour(0.0))
    heard = await beside if beside else None
    third, *own = [
        await sandbox.run("print(6 * 7)", episode) for episode in (f"{name} third", name, name)
    ]
    for episode in (name, f"{name} third", f"{name} neighbour"):
        await sandbox.end(episode)
    return [
        problem for problem, found in problems_of(attack, run, heard, third, own).items() if found
    ]


def problems_of(
    attack: Attack, run: Run, heard: Run | None, third: Run, own: list[Run]
) -> dict[str, bool]:
    escaped = attack["escaped"].replace("{secret}", re.escape(SECRET))
    return {
        f"escaped: {run.output[-300:]!r}": bool(re.search(escaped, run.output)),
        f"took {run.seconds:.1f} s": run.seconds > HANGS,
        f"printed {len(run.output)}": len(run.output.encode()) > MOST,
        f"its neighbour: {heard}": bool(
            heard and heard.output.strip() != attack["neighbour_prints"].strip()
        ),
        f"a third episode: {third}": third.output.strip() != "42",
        f"its own episode afterwards: {own}": own[-1].status
        not in ("ok", "error"),  # it may have changed its print
    }
