"""A process that reads, runs and shapes the model's SQL, and that can be ended: tools/sql/pool.py starts it.

    python -m tools.sql.worker CHANNEL PARENT      # a socket it inherits, and the process it ends with

No parser, planner or string function has to look at a clock here. The kernel ends the process when a statement has
overrun its deadline, and refuses it memory beyond its share; who asked sees the channel close.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from tools.sql.answer import Answer, Question, answer
from tools.sql.database import DatabaseError, Unreachable, open_database
from tools.sql.guard import nodes

MARGIN = 0.25  # seconds after the deadline: what a statement that ended in time may still need
MEMORY = 512 * 2**20  # bytes of address space beyond what the program itself has


def main() -> None:
    channel = Connection(int(sys.argv[1]))
    threading.Thread(target=_end_with, args=(int(sys.argv[2]),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that asks
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    _limit_memory()
    channel.send("ready")
    while True:
        try:
            question = channel.recv()
        except (EOFError, OSError):
            return
        channel.send(_reply(question))


def _reply(question: Question) -> Answer | DatabaseError:
    try:
        database = open_database(question.url)
        nodes(database.dialect)  # made once, and not at a statement's cost
    except DatabaseError as error:
        return Unreachable(str(error))
    try:
        with _alarm(question.limits.deadline + MARGIN):
            return answer(database, question)
    except DatabaseError as error:
        return error
    except MemoryError:
        os._exit(1)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """End this process if the block takes longer; Python need not get a turn for that."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _end_with(parent: int) -> None:
    """End when the parent has: a closed channel says so too, but not while a statement runs."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def _limit_memory() -> None:
    """Bound this process's address space, within what it was allowed already."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    wanted = pages * resource.getpagesize() + MEMORY
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    least = min([wanted, *allowed])
    resource.setrlimit(resource.RLIMIT_AS, (least, least))


if __name__ == "__main__":
    main()
