"""This process's worker programs, each with one question at a time. Ended ones are replaced.

Further questions wait before their deadline starts.
"""

import os
import signal
import subprocess
import sys
from collections import deque
from multiprocessing import Pipe
from threading import Semaphore
from typing import Any

from common.settings import ROOT
from tools.sql.database import CONCURRENT
from tools.sql.errors import DatabaseError, Exhausted

END_SECONDS = 5.0  # for a worker whose channel is closed
# By the alarm that bounds the wall clock, which no statement alone reaches, or by a kill from outside
NOT_BY_THE_STATEMENT = (-signal.SIGALRM, -signal.SIGKILL, -signal.SIGTERM)


class Overrun(Exception):
    """The question ended its worker or connection. The text shows the machine's fault, or ""."""


class Worker:
    """A worker process and the channel to it."""

    def __init__(self) -> None:
        self.channel, theirs = Pipe()
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        # -P: nothing may be imported from the working directory
        command = [sys.executable, "-P", "-m", "tools.sql.worker"]
        self.process = subprocess.Popen(
            [*command, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": path, "MALLOC_ARENA_MAX": "2"},
            process_group=0,  # Ctrl-C at the terminal must not reach it
        )
        theirs.close()
        self.ready = False

    def ask(self, question: Any) -> Any:
        """Return the worker's answer. Raises Overrun, and DatabaseError if it never started."""
        try:
            if not self.ready:
                self.ready = self.channel.recv()
            self.channel.send(question)
            answer = self.channel.recv()
        except (EOFError, OSError):
            try:
                code = self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                code = self.process.wait()
            if not self.ready:
                raise DatabaseError(
                    f"the process that runs SQL ended as it started (exit code {code})"
                ) from None
            by_machine = code in NOT_BY_THE_STATEMENT
            raise Overrun(f"its process ended with code {code}" if by_machine else "") from None
        except BaseException:
            # An answer left in an interrupted caller's channel must not reach the next caller
            self.process.kill()
            self.process.wait()
            raise
        if isinstance(answer, DatabaseError):
            raise Overrun("" if isinstance(answer, Exhausted) else str(answer)) from answer
        return answer


class Pool:
    """Workers for many threads. The one that answered last is asked first."""

    def __init__(self) -> None:
        self.free = Semaphore(CONCURRENT)
        self.workers: deque[Worker | None] = deque([None] * CONCURRENT)

    def ask(self, *question: Any) -> Any:
        """Return a worker's answer. Raises Overrun, and DatabaseError if no worker can start."""
        with self.free:
            worker = self.workers.pop()
            try:
                if worker is None or worker.process.poll() is not None:
                    worker = Worker()
                answer = worker.ask(question)
                self.workers.append(worker)
            except OSError as error:
                self.workers.appendleft(None)
                raise DatabaseError(f"cannot start the process that runs SQL: {error}") from None
            except BaseException:
                self.workers.appendleft(None)
                raise
            return answer


POOL = Pool()
os.register_at_fork(after_in_child=POOL.__init__)  # type: ignore[misc]
