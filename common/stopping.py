"""SIGTERM, SIGHUP and Ctrl-C end a program alike: in order, with its summary, without leftovers."""

import os
import signal
import time
from threading import Thread, main_thread

NUDGES = 5
NUDGE_SECONDS = 0.1


def stop_in_order() -> None:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, from the start of a program's main, while it has
    a single thread. SIGHUP stays ignored under `nohup`.
    """
    # asyncio ends in order only with Python's handler, which a program in the background lacks
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL:
        return
    if signal.SIGHUP in signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP]):
        return
    signal.signal(signal.SIGURG, lambda *_: None)  # only wakes; nothing else here uses it
    terminals = [number for number in (1, 2) if os.isatty(number)]  # stdout and stderr

    def end_at_hangup() -> None:
        signal.sigwait([signal.SIGHUP])
        with open(os.devnull, "w") as nowhere:
            for number in terminals:
                os.dup2(nowhere.fileno(), number)
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(NUDGES):
            time.sleep(NUDGE_SECONDS)
            signal.pthread_kill(main_thread().ident or 0, signal.SIGURG)

    Thread(target=end_at_hangup, name="hangup", daemon=True).start()
