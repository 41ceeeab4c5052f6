"""SIGTERM, SIGHUP and Ctrl-C end a program alike: in order, with its summary and without leftovers.

    stop_in_order()      # at the start of a program's main, while it has a single thread

A shell that starts a program in the background (`&` in a script, cron, an entry point) makes it
ignore SIGINT; `nohup` makes it ignore SIGHUP, and that is left as it is.
"""

from __future__ import annotations

import os
import signal
import time
from threading import Thread, main_thread

STDOUT = 1
STDERR = 2
NUDGES = 5
NUDGE_SECONDS = 0.1


def stop_in_order() -> None:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, and Ctrl-C what Python's own handler does.

    asyncio ends a loop in order only where SIGINT has Python's handler, so a program that was
    started in the background receives SIGINT again, too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        _hear_hangup()


def _hear_hangup() -> None:
    """Wait for SIGHUP in a thread, and block it for the processes that this one starts.

    A closed terminal sends SIGHUP to all of them at once; those without a handler, such as Ray's,
    would be gone before this one could end them in order. Children inherit a blocked signal, but
    not a handler.
    """
    if signal.SIGHUP in signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP]):
        return
    signal.signal(signal.SIGURG, lambda *_: None)  # only wakes; nothing else here uses it
    terminals = [number for number in (STDOUT, STDERR) if os.isatty(number)]
    Thread(target=_end_at_hangup, args=(terminals,), name="hangup", daemon=True).start()


def _end_at_hangup(terminals: list[int]) -> None:
    """Wait for SIGHUP, then end; what is written to a terminal that is gone would raise OSError.

    This thread runs just when the main one is about to wait in the kernel. A signal that comes
    before the wait has begun is noted and ends no wait, so the main thread is woken afterwards.
    """
    signal.sigwait([signal.SIGHUP])
    with open(os.devnull, "w") as nowhere:
        for number in terminals:
            os.dup2(nowhere.fileno(), number)
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(NUDGES):
        time.sleep(NUDGE_SECONDS)
        signal.pthread_kill(main_thread().ident or 0, signal.SIGURG)
