"""Let one command at a time train in a run's folder. The system's lock ends with the process."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from training.setup.plan import ConfigError

LOCK = "run.lock"


@contextmanager
def held(run_dir: Path) -> Iterator[None]:
    """Hold the folder's lock in the block. A folder made here in which nothing began is removed.
    Raises ConfigError: a living process has it.
    """
    made = not run_dir.exists()
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = "another command"
            with suppress(OSError, ValueError, KeyError):
                who = json.loads((run_dir / LOCK).read_text(encoding="utf-8"))
                since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(who["since"]))
                holder = f"process {who['pid']} on {who['host']} since {since}"
            raise ConfigError(
                f"{run_dir} is being trained in by {holder}; wait for that "
                "command or stop it, or choose another --run-dir"
            ) from None
        file.truncate(0)
        who = {"host": socket.gethostname(), "pid": os.getpid(), "since": time.time()}
        file.write(json.dumps(who))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
            if made and [path.name for path in run_dir.iterdir()] == [LOCK]:
                (run_dir / LOCK).unlink()
                run_dir.rmdir()
