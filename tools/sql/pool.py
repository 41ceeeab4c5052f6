"""The workers of this process: started at the first question, kept, replaced when they end, and gone when it goes.

    POOL.ask(Question(...), workers=2)      # an Answer

A worker is a program of its own, so that it starts from a script, a thread or a child process alike; a fork starts with
no workers. One worker answers one question at a time, and further questions wait.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from multiprocessing.connection import Pipe
from pathlib import Path

from tools.sql.answer import Answer, Question
from tools.sql.database import DatabaseError, Unreachable

ROOT = Path(__file__).resolve().parents[2]


class Overrun(Exception):
    """No answer: the worker ended over the question, which took too long or too much memory, or its database failed."""


class Worker:
    """One worker process, and the channel to it."""

    def __init__(self) -> None:
        self._channel, theirs = Pipe()
        known = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(ROOT), *([known] if known else [])])
        self._process = subprocess.Popen(
            # -P: the folder somebody works in is no place to import from.
            [sys.executable, "-P", "-m", "tools.sql.worker", str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": path, "MALLOC_ARENA_MAX": "2"},
            process_group=0,  # Ctrl-C at the terminal is not for it
        )
        theirs.close()
        self.ready = False

    def runs(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def ask(self, question: Question) -> Answer:
        """The worker's answer. Raises Overrun, and DatabaseError: there is no worker, or no connection."""
        try:
            self._wait_until_ready()
            self._channel.send(question)
            reply = self._channel.recv()
        except BaseException as error:  # the answer of an interrupted caller is not the next one's either
            self.end()
            if isinstance(error, (EOFError, OSError)):
                raise Overrun from None
            raise
        if isinstance(reply, Unreachable):
            raise reply
        if isinstance(reply, DatabaseError):
            raise Overrun from reply
        return reply

    def _wait_until_ready(self) -> None:
        try:
            self.ready = self.ready or bool(self._channel.recv())
        except (EOFError, OSError):
            code = self._process.wait()
            raise DatabaseError(f"the process that runs SQL ended as it started (exit code {code})") from None

    def leave(self) -> None:
        """Close the channel, which ends the process unless somebody else has it open."""
        self._channel.close()

    def end(self) -> None:
        """End the process now."""
        self.leave()
        self._process.kill()
        self._process.wait()


class Pool:
    """Workers for the questions of many threads; the one that answered last is asked first."""

    def __init__(self) -> None:
        self._all: set[Worker] = set()
        self._forget()

    def ask(self, question: Question, workers: int) -> Answer:
        """The answer of one of at most so many workers. Raises Overrun, and DatabaseError: no worker, no connection."""
        worker = self._take(workers)
        try:
            return worker.ask(question)
        finally:
            self._give_back(worker)

    def close(self) -> None:
        """End all workers."""
        for worker in self._all:
            worker.end()
        self._forget()

    def _take(self, workers: int) -> Worker:
        with self._changed:
            while not self._idle and len(self._all) >= workers:
                self._changed.wait()
            worker = self._idle.pop() if self._idle else self._new()
            return worker if worker.runs() else self._replace(worker)

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            if worker.runs():
                self._idle.append(worker)
            elif worker.ready:
                self._idle.append(self._replace(worker))  # so that it is warm when it is asked
            else:
                self._all.discard(worker)
            self._changed.notify()

    def _replace(self, worker: Worker) -> Worker:
        self._all.discard(worker)
        worker.end()
        return self._new()

    def _new(self) -> Worker:
        worker = Worker()
        self._all.add(worker)
        return worker

    def _forget(self) -> None:
        """Have no workers: after a fork they are the parent's."""
        for worker in self._all:
            worker.leave()
        self._all = set()
        self._idle: list[Worker] = []
        self._changed = threading.Condition()


POOL = Pool()
os.register_at_fork(after_in_child=POOL._forget)
atexit.register(POOL.close)
