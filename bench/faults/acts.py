"""Ways to harm a run: each function begins one, and returns how to end it if it ends."""

import os
import shutil
import signal
import sqlite3
import struct
from collections.abc import Callable, Mapping
from typing import Any

from bench.faults.scenes import Scene

Fault = Mapping[str, Any]
Undo = Callable[[], object] | None


def kill(scene: Scene, fault: Fault) -> Undo:
    scene.find(fault["to"])[0].kill()
    return None


def kill_group(scene: Scene, fault: Fault) -> Undo:
    os.killpg(scene.find(fault["to"])[0].pid, signal.SIGKILL)
    return None


def kill_and_start(scene: Scene, fault: Fault) -> Undo:
    kill_group(scene, fault)
    return lambda: scene.start(fault["to"])


def freeze(scene: Scene, fault: Fault) -> Undo:
    process = scene.find(fault["to"])[0]
    process.suspend()
    return process.resume


def doors(scene: Scene, fault: Fault) -> Undo:
    chosen = [scene.doors[name] for name in fault["to"].split(", ")]
    for door in chosen:
        door.set(fault["fault"])
    return lambda: [door.set(None) for door in chosen]


def lock(scene: Scene, fault: Fault) -> Undo:
    """Lock the database, as another program's writing does."""
    connection = sqlite3.connect(scene.database, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    return connection.close


def remove(scene: Scene, fault: Fault) -> Undo:
    away = scene.database.with_suffix(".away")
    scene.database.rename(away)
    return lambda: away.rename(scene.database)


def fill(scene: Scene, fault: Fault) -> Undo:
    """Fill the disk but for so many bytes."""
    assert scene.disk
    scene.disk.fill(int(fault["to"]))
    return scene.disk.free


def clock(scene: Scene, fault: Fault) -> Undo:
    with scene.clock.open("r+b") as file:
        file.write(struct.pack("d", float(fault["to"])))
    return None


def no_bubblewrap(scene: Scene, fault: Fault) -> Undo:
    """Replace the bubblewrap that this run finds by a file that cannot be run, and kill what runs
    in it.
    """
    own = scene.folder / "bwrap"
    own.write_text("gone")
    own.chmod(0o755)
    real = shutil.which("bwrap")
    for runner in scene.find("runner"):
        for sandbox in (child for child in runner.children() if child.name() == "bwrap"):
            sandbox.kill()

    def undo() -> None:
        own.unlink()
        own.symlink_to(str(real))

    return undo


ACTS: dict[str, Callable[[Scene, Fault], Undo]] = {
    act.__name__.replace("_", " "): act
    for act in (
        kill,
        kill_group,
        kill_and_start,
        freeze,
        doors,
        lock,
        remove,
        fill,
        clock,
        no_bubblewrap,
    )
}
