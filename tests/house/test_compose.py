"""compose.yaml without Docker: its services are played on this machine, each with the command and
the environment that the file gives it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.settings import ROOT
from episodes import registry
from tests.runs import free_port
from tests.tools.sql.servers import fresh_database, postgres_server
from training.start.arguments import parse

FILE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^${}]*))?\}")
WORDS = {"AGL_TOKEN": "t" * 32, "POSTGRES_PASSWORD": "p" * 32, "READER_PASSWORD": "r" * 32}
# What a program gets of the machine, as from an image
IMAGE = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL")
OF_THE_MACHINE = {
    # of a run on one machine, or fixed by compose.yaml itself
    "AGL_MANAGED_STORE",
    "AGL_CURRENT_ROLE",
    "AGL_SERVER_HOST",
    "AGL_SERVER_PORT",
    "AGL_TOKEN",
    "DATABASE_URL",
    "LLM_PROXY_HOST",
    "LLM_PROXY_PORT",
    "LLM_PROXY_PUBLIC_HOST",
    # of a program that no service runs
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
}


def filled(text: str, shell: dict[str, str]) -> str:
    """A text with its variables, the innermost first."""

    def value(found: re.Match[str]) -> str:
        name, kind, otherwise = found.groups()
        assert kind != "?" or shell.get(name), f"{name}: {otherwise}"
        return shell.get(name) or (otherwise or "")

    while VARIABLE.search(text):
        text = VARIABLE.sub(value, text)
    return text


@dataclass
class Composed:
    """The services of compose.yaml on this machine: `places` maps their addresses to others."""

    folder: Path
    shell: dict[str, str]
    places: dict[str, str]

    def __post_init__(self) -> None:
        self.services: dict[str, Any] = yaml.safe_load(filled(FILE, self.shell))["services"]
        own = {"runs", "outputs", "store", ".env", ".git"}
        for path in ROOT.iterdir():
            if path.name not in own:
                (self.folder / path.name).symlink_to(path)

    def here(self, text: str) -> str:
        for there, here in self.places.items():
            text = text.replace(there, here)
        return text

    def environment(self, name: str) -> dict[str, str]:
        given = dict(self.services[name]["environment"])
        passed = {key: self.shell[key] for key in given if given[key] is None and key in self.shell}
        set_here = {key: self.here(value) for key, value in given.items() if value is not None}
        return {key: os.environ[key] for key in IMAGE if key in os.environ} | passed | set_here

    def start(self, name: str, *more: str, command: str = "") -> subprocess.Popen[str]:
        words = shlex.split(self.here(command or self.services[name]["command"]))
        assert words[0] == "python"
        with (self.folder / f"{name}.log").open("a", encoding="utf-8") as log:
            return subprocess.Popen(
                [sys.executable, *words[1:], *more],
                cwd=self.folder,
                env=self.environment(name),
                stdout=log,
                stderr=log,
                text=True,
            )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def run(self, name: str, command: str = "") -> None:
        assert self.start(name, command=command).wait(600) == 0, self.log(name)

    @contextmanager
    def running(self, name: str, *more: str) -> Iterator[subprocess.Popen[str]]:
        """Start a service and wait until it is healthy."""
        process = self.start(name, *more)
        test = self.services[name]["healthcheck"]["test"]
        url = self.here(re.findall(r"http://[^')]*", test)[0])

        try:
            while not answers(url):
                assert process.poll() is None, self.log(name)
                time.sleep(0.5)
            yield process
        finally:
            process.terminate()
            process.wait(60)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.fixture
def database():
    """The service `postgres`: the file's own SQL has set it up."""
    import psycopg

    with postgres_server() as (url, _):
        fresh_database(url, "medical")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE ROLE postgres SUPERUSER LOGIN")
        address = url.partition("@")[2].partition("/")[0]
        place = f"postgresql://postgres@{address}/medical"
        sql = yaml.safe_load(filled(FILE, WORDS))["configs"]["reader"]["content"]
        with psycopg.connect(place, autocommit=True) as connection:
            for statement in sql.split(";\n"):
                connection.execute(statement)
        yield {"@postgres/": f"@{address}/"}


def rows(composed: Composed) -> list[tuple[Any, ...]]:
    """The drugs, read as the programs do."""
    import psycopg

    url = composed.environment("runners")["DATABASE_URL"]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM disease").fetchone() == (363,)
        return connection.execute("SELECT id, med_name FROM drugs_info ORDER BY id").fetchall()


@pytest.mark.system
def test_tables_are_loaded_once_and_an_import_stays(database, tmp_path):
    composed = Composed(tmp_path, WORDS, database)
    composed.run("tables")
    bundled = rows(composed)
    assert len(bundled) == 562
    (tmp_path / "drugs.csv").write_text("药品名称,适应症\n甲片,发热\n", encoding="utf-8")
    documented = re.search(r" tables (python -m data\.import_database drugs\.csv .*)", FILE)
    assert documented
    composed.run("tables", documented[1])
    mine = rows(composed)
    assert [name for _, name in mine] == ["甲片"]
    composed.run("tables")
    assert rows(composed) == mine


@pytest.mark.engine
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_services_train_and_serve_one_run(database, tmp_path):
    store, proxy, served = (str(free_port()) for _ in range(3))
    places = {
        **database,
        "//store:4747": f"//127.0.0.1:{store}",
        "127.0.0.1:4747": f"127.0.0.1:{store}",
        "4748": proxy,
        "127.0.0.1:8010": f"127.0.0.1:{served}",
    }
    shell = {**WORDS, "TENSORBOARD_DIR": str(tmp_path / "board")}
    composed = Composed(tmp_path, shell, places)
    composed.services["trainer"]["environment"]["LLM_PROXY_PUBLIC_HOST"] = "127.0.0.1"
    composed.run("tables")
    for _ in range(2):  # the second goes on, and finds that nothing is left
        with composed.running("store", "--port", store):
            runners = composed.start("runners")
            try:
                composed.run("trainer")
            finally:
                runners.terminate()
                runners.wait(60)
    assert "finished" in composed.log("trainer")
    assert (tmp_path / "board").exists()
    with composed.running("serve", "--port", served):
        pass


def test_a_service_gets_the_variables_that_it_reads_and_no_others():
    services = yaml.safe_load(FILE)["services"]
    template = (ROOT / "env_template").read_text(encoding="utf-8")
    known = set(re.findall(r"^([A-Z_]+)=", template, re.MULTILINE))
    given = {name: set(service.get("environment") or {}) for name, service in services.items()}
    assert known - set().union(*given.values()) <= OF_THE_MACHINE
    have = {
        variable: {name for name, variables in given.items() if variable in variables}
        for variable in ("TEACHER_API_KEY", "WANDB_API_KEY", "PATIENT_API_KEY", "SIMULATOR_API_KEY")
    }
    assert have == {
        "TEACHER_API_KEY": {"runners", "trainer"},
        "WANDB_API_KEY": {"trainer"},
        "PATIENT_API_KEY": {"runners", "serve"},
        "SIMULATOR_API_KEY": {"runners", "serve"},
    }
    commands = " ".join(str(service.get("command")) for service in services.values())
    keys = [name for name in known if name.endswith(("KEY", "TOKEN", "PASSWORD"))]
    assert [name for name in keys if name in commands] == []


def test_the_flags_of_the_example_exist():
    found = re.findall(r"AGENT=(\w+) ARGS='([^']*)'.*?`(--[^`]*)`", FILE)
    assert found
    for agent, *words in found:
        parse(registry.get(agent), shlex.split(" ".join(words)))


@pytest.mark.system
def test_the_words_in_env_are_drawn_once(tmp_path):
    command = next(line for line in FILE.splitlines() if "umask" in line).lstrip("# ")
    mine = "TEACHER_API_KEY=mine\nAGL_TOKEN=mine\nREADER_PASSWORD="
    (tmp_path / ".env").write_text(mine, encoding="utf-8")
    for _ in range(2):
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
        found = (tmp_path / ".env").read_text(encoding="utf-8")
        assert found.startswith(mine)
        assert found.count("AGL_TOKEN=") == 1
        assert len(re.findall(r"^\w+_PASSWORD=[0-9a-f]{32}$", found, re.MULTILINE)) == 2
    (tmp_path / ".env").unlink()
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / ".env").stat().st_mode & 0o77 == 0
