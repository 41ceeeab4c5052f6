"""Process 1 of the sandbox: imports what programs need and forks a supervisor for each episode."""

import gc
import importlib
import os
import signal
import socket
import sys
from functools import partial

from tools.sandbox.inside.kernel import NEWPID, Settings, fork, readable, system
from tools.sandbox.inside.supervisor import supervise


def main(settings: Settings) -> None:
    """Fork a supervisor for every line that comes, until the caller ends or closes its end."""
    # -I, which keeps the account's own packages away, does not look at PYTHONPATH
    sys.path += settings["packages"]
    for name in settings["warm"]:
        importlib.import_module(name)
    nothing = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1):  # or all episodes could open the one pipe, for writing too
        os.dup2(nothing, standard)
    gc.freeze()  # or each fork's first collection would copy what all of them share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 hears only signals that it handles
    asker = settings["asker"]
    control = socket.socket(fileno=settings["control"])
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    while asker not in readable(asker, control.fileno()):
        _, lines, *_ = socket.recv_fds(control, 1, 1)
        if not lines:
            return
        with socket.socket(fileno=lines[0]) as line:
            if settings["namespaces"]:
                system("unshare", NEWPID)  # for the next child
            fork(partial(supervise, line, settings))
            if settings["namespaces"]:
                system("setns", own, NEWPID)
