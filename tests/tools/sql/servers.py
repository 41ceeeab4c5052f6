"""Real database servers for tests: PostgreSQL and MariaDB, started in a temporary folder on a
loopback port of their own.

Debian: apt-get install postgresql mariadb-server. The services those packages start are not used.
Both servers refuse to run as root, so root hands them to the packages' own users.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url

START_SECONDS = 60


@contextlib.contextmanager
def kept_port() -> Iterator[int]:
    """Return a loopback port kept for a server that sets SO_REUSEADDR."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield keeper.getsockname()[1]


def fresh_database(url: str, name: str) -> str:
    """The URL of a new, empty database on the server of an administrator's URL."""
    place = make_url(url.replace("postgresql://", "postgresql+psycopg://"))
    engine = create_engine(place, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return place.set(database=name).render_as_string(hide_password=False)


def find_program(name: str, *folders: str) -> str | None:
    """The program on the PATH, or the newest one below Debian's folders."""
    for pattern in folders:
        found = sorted(Path("/").glob(pattern + "/" + name))
        if found:
            return str(found[-1])
    return shutil.which(name)


def as_user(name: str) -> dict:
    """How to start a process as the server's own user; nothing when this is not root."""
    if os.getuid() != 0:
        return {}
    return {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}


@contextlib.contextmanager
def server_folder(user: str) -> Iterator[Path]:
    """Make a short-named folder of the server's user: socket paths may have 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="db"))
    if os.getuid() == 0:
        shutil.chown(folder, user)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running(
    command: list[str], user: str, folder: Path, ready, end: signal.Signals
) -> Iterator[subprocess.Popen]:
    """Run a server until the block ends; `ready` raises until it takes connections."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **as_user(user))
    try:
        wait_until(ready, process, folder)
        yield process
    finally:
        process.send_signal(end)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(ready, process: subprocess.Popen, folder: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            return ready()
        except Exception as error:
            if process.poll() is not None or time.monotonic() > end:
                log = (folder / "log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the server did not start: {error}\n{log}") from None
            time.sleep(0.1)


@contextlib.contextmanager
def postgres_server() -> Iterator[tuple[str, subprocess.Popen]]:
    """An administrator's URL of a fresh PostgreSQL, and its process."""
    psycopg = pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    initdb = find_program("initdb", "usr/lib/postgresql/*/bin")
    if not initdb:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    with kept_port() as port, server_folder("postgres") as folder:
        data = str(folder / "data")
        options = "--username=admin --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync"
        make = [initdb, f"--pgdata={data}", *options.split()]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **as_user("postgres"))
        options = ["-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-c", "fsync=off"]
        command = [str(Path(initdb).with_name("postgres")), "-D", data, *options]
        url = f"postgresql://admin@127.0.0.1:{port}/postgres"
        # SIGTERM would wait for every connection that is still open
        with running(
            command, "postgres", folder, lambda: psycopg.connect(url).close(), signal.SIGQUIT
        ) as process:
            yield url, process


@contextlib.contextmanager
def mariadb_server() -> Iterator[tuple[str, subprocess.Popen]]:
    """An administrator's URL of a fresh MariaDB with a database `medical`, and its process."""
    pymysql = pytest.importorskip("pymysql", reason="the package PyMySQL is not installed")
    server = find_program("mariadbd", "usr/sbin")
    install = find_program("mariadb-install-db")
    if not server or not install:
        pytest.skip("MariaDB is not installed (apt-get install mariadb-server)")
    with kept_port() as port, server_folder("mysql") as folder:
        make = [install, "--no-defaults", f"--datadir={folder}/data"]
        make.append("--auth-root-authentication-method=normal")
        # In one folder for all, those that start at the same time remove each other's files
        own = {"cwd": folder, "env": {**os.environ, "TMPDIR": str(folder)}, **as_user("mysql")}
        subprocess.run(make, check=True, capture_output=True, **own)
        options = "--innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0"
        options += " --bind-address=127.0.0.1 --character-set-server=utf8mb4"
        options += f" --datadir={folder}/data --tmpdir={folder} --socket={folder}/socket"
        options += f" --pid-file={folder}/pid --port={port}"
        command = [server, "--no-defaults", *options.split()]

        def ready() -> None:
            with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection:
                create = "CREATE DATABASE IF NOT EXISTS medical CHARACTER SET utf8mb4"
                connection.cursor().execute(create)

        with running(command, "mysql", folder, ready, signal.SIGKILL) as process:
            yield f"mysql+pymysql://root@127.0.0.1:{port}/medical?charset=utf8mb4", process
