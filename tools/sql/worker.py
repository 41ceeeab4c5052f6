"""A process that reads, runs and shapes the model's SQL for tools/sql/pool.py.

The kernel ends it beyond the deadline's processor time and bounds its memory, so parsers, planners
and string functions need no clock.
"""

import os
import resource
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from common.parent import end_with
from tools.sql.database import open_database
from tools.sql.errors import DatabaseError
from tools.sql.guard import nodes
from tools.sql.query import Answer, QueryTool

OPENING = 30.0  # seconds until a database that does not open is given up
MARGIN = 0.2  # processor seconds after the deadline that a statement in time may still need
PATIENCE = 30.0  # seconds of the wall clock: more than any statement takes on a machine that works
MEMORY = 512 * 2**20  # bytes of address space beyond what the program itself has


def main() -> None:
    channel = Connection(int(sys.argv[1]))
    parent = int(sys.argv[2])
    end_with(parent)  # a closed channel shows it, too, but not while a statement runs
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)  # which ends the process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM, signal.SIGPROF])
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limits = [pages * resource.getpagesize() + MEMORY, *resource.getrlimit(resource.RLIMIT_AS)]
    least = min(limit for limit in limits if limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_AS, (least, least))
    with suppress(BrokenPipeError):  # the caller may be gone, which the next line finds out
        channel.send(True)
    while True:
        try:
            question = channel.recv()
        except (EOFError, OSError):
            return
        with suppress(BrokenPipeError):
            channel.send(answer(*question))


def answer(url: str, tool: QueryTool, sql: str) -> Answer | DatabaseError:
    try:
        signal.setitimer(signal.ITIMER_REAL, OPENING)
        database = open_database(url)
        nodes(database.dialect)  # made once, before a statement's time counts
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        signal.setitimer(signal.ITIMER_PROF, tool.limits.deadline + MARGIN)
        return tool.answer(database, sql)
    except DatabaseError as error:
        return error
    except MemoryError:
        os._exit(1)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
