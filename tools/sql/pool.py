"""The workers of this process: programs of their own, started when they are needed, kept, and
replaced when they end.

    POOL.ask(database.url, tool, sql)      # what `tool` answers, from another process

A worker answers one question at a time; further questions wait, which costs them no deadline. A
forked child has none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path
from queue import LifoQueue
from typing import Any

from tools.sql.database import CONCURRENT, DatabaseError

ROOT = Path(__file__).resolve().parents[2]


class Overrun(Exception):
    """The question ended its worker, or broke the connection to the database."""


class Worker:
    """One worker process, and the channel to it."""

    def __init__(self) -> None:
        self.channel, theirs = Pipe()
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            # -P: the folder somebody works in is no place to import from.
            [
                sys.executable,
                "-P",
                "-m",
                "tools.sql.worker",
                str(theirs.fileno()),
                str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": path, "MALLOC_ARENA_MAX": "2"},
            process_group=0,  # Ctrl-C at the terminal is not for it
        )
        theirs.close()
        self.ready = False

    def ask(self, question: Any) -> Any:
        """The worker's answer. Raises Overrun, and DatabaseError when the worker never started."""
        try:
            self.ready = self.ready or self.channel.recv()
            self.channel.send(question)
            answer = self.channel.recv()
        except (
            BaseException
        ) as error:  # what is left in an interrupted caller's channel is nobody's answer
            self.process.kill()
            code = self.process.wait()
            if not isinstance(error, (EOFError, OSError)):
                raise
            if not self.ready:
                raise DatabaseError(
                    f"the process that runs SQL ended as it started (exit code {code})"
                ) from None
            raise Overrun from None
        if isinstance(answer, DatabaseError):
            raise Overrun from answer
        return answer


class Pool:
    """Workers for the questions of many threads; the one that answered last is asked first."""

    def __init__(self) -> None:
        self.workers: LifoQueue[Worker | None] = LifoQueue()
        for _ in range(CONCURRENT):
            self.workers.put(None)

    def ask(self, *question: Any) -> Any:
        """What a worker answers. Raises Overrun, and DatabaseError when no worker can start."""
        worker = self.workers.get()
        try:
            if worker is None or worker.process.poll() is not None:
                worker = Worker()
            return worker.ask(question)
        except OSError as error:
            raise DatabaseError(f"cannot start the process that runs SQL: {error}") from None
        finally:
            self.workers.put(worker)


POOL = Pool()
os.register_at_fork(after_in_child=POOL.__init__)  # type: ignore[misc]
