"""Programs that try to get out, to last, to reach a neighbour or to stop the machine:
corpus/README.md.

docs/safety.md promises that none does. One of each kind is played in every run, all of them
nightly.
"""

import asyncio
import re
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from tests.corpora import cases_of
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
    found: dict[str, list[Attack]] = {}
    for name in ("attacks", "attacks_sealed"):
        for attack in cases_of(__file__, f"corpus/{name}"):
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
        planted = {"repo": ROOT, "secret_file": self.secret_file, "env_name": VARIABLE}
        for name, value in {**planted, "port": self.port, "pid": self.pid}.items():
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
            for problem in await tried(sandbox, attack, machine):
                problems.append(f"{attack['id']}: {problem}")

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
        code = machine.filled(attack["neighbour"])
        return await sandbox.run(code, f"{name} neighbour", deadline=DEADLINE)

    for program in attack.get("setup") or []:
        await sandbox.run(machine.filled(program), name, deadline=DEADLINE)
    beside = None
    if attack.get("neighbour_when") == "during":
        beside = asyncio.create_task(neighbour(1.0))
    try:
        code = machine.filled(attack["code"])
        run = await sandbox.run(code, name, attack["language"], deadline=DEADLINE)
    except MachineTooSlowError:  # an endless one on a machine with other things to do
        run = Run("timeout", "", 0.0)
    if beside is None and attack.get("neighbour"):
        beside = asyncio.create_task(neighbour(0.0))
    heard = await beside if beside else None
    episodes = (f"{name} third", name, name)
    third, *own = [await sandbox.run("print(6 * 7)", episode) for episode in episodes]
    for episode in (name, f"{name} third", f"{name} neighbour"):
        await sandbox.end(episode)
    found = problems_of(attack, run, heard, third, own)
    return [problem for problem in found if found[problem]]


def problems_of(
    attack: Attack, run: Run, heard: Run | None, third: Run, own: list[Run]
) -> dict[str, bool]:
    escaped = attack["escaped"].replace("{secret}", re.escape(SECRET))
    disturbed = heard is not None and heard.output.strip() != attack["neighbour_prints"].strip()
    lost = own[-1].status not in ("ok", "error")  # it may have changed its print
    return {
        f"escaped: {run.output[-300:]!r}": bool(re.search(escaped, run.output)),
        f"took {run.seconds:.1f} s": run.seconds > HANGS,
        f"printed {len(run.output)}": len(run.output.encode()) > MOST,
        f"its neighbour: {heard}": disturbed,
        f"a third episode: {third}": third.output.strip() != "42",
        f"its own episode afterwards: {own}": lost,
    }
