"""A program in a terminal of its own, as a person sees it."""

from __future__ import annotations

import os
import pty
import sys

from common.settings import ROOT


def in_a_terminal(program: str, *arguments: str, **environment: str) -> str:
    """All that Python's `-c PROGRAM` sends to its terminal; it must end well."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(ROOT)
        os.environ |= environment
        os.execv(sys.executable, [sys.executable, "-c", program, *arguments])
    found = b""
    try:
        while part := os.read(terminal, 65_536):
            found += part
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, found.decode()
    return found.decode()
