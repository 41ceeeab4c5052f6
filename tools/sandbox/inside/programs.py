"""Runs the model's programs: an episode's interpreter and a shell. The program controls all of it."""

import linecache
import os
import signal
import socket
import sys
import traceback
import types
from contextlib import suppress
from typing import Any, NoReturn

from tools.sandbox.inside.kernel import Settings, confine, keep_only

# What the interpreter reports
DONE = b"+"
FAILED = b"-"


def command(source: str, out: int, errors: int, settings: Settings) -> NoReturn:
    """Become a shell that runs the command."""
    os.dup2(out, 1)
    os.dup2(errors, 2)
    confine(settings)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execve("/bin/sh", [b"sh", b"-c", source.encode(errors="replace")], os.environ)


def interpret(commands: socket.socket, settings: Settings) -> None:
    """Run one program after another in one namespace, like a notebook's cells."""
    commands = socket.socket(fileno=keep_only(commands.detach()))
    confine(settings)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.append(os.getcwd())  # of modules that the programs write. Installed ones come first
    sys.dont_write_bytecode = True  # or one that is written again within a second stays as it was
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # or every episode draws the same. `random` does so by itself
    me = os.getpid()
    names = types.ModuleType("__main__")
    sys.modules["__main__"] = names
    for number in range(1, sys.maxsize):
        commands.settimeout(None)  # waits, whatever a program made of the line, or of True
        _, (text, out, errors, done), *_ = socket.recv_fds(commands, 1, 4)
        with open(text, encoding="utf-8", errors="surrogatepass", newline="") as file:
            source = file.read()
        sys.stdout = print_to(out, 1)
        sys.stderr = print_to(errors, 2)
        streams = (sys.stdout, sys.stderr)
        report = FAILED
        with suppress(BaseException):  # of an exception that cannot even be printed
            report = execute(source, f"<program {number}>", names.__dict__)
        with suppress(BaseException):  # an alarm would end a later program
            signal.setitimer(signal.ITIMER_REAL, 0)
        for stream in streams:
            with suppress(BaseException):  # it was closed
                stream.flush()
        if os.getpid() != me:
            os._exit(0)  # a child that the program forked and forgot
        with suppress(OSError):  # the program closed it
            os.write(done, report)
            os.close(done)


def print_to(out: int, standard: int) -> Any:
    """Return a standard stream that writes to `out`, whatever the last program made of it."""
    os.dup2(out, standard)
    os.close(out)
    return open(
        standard, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )


def execute(source: str, name: str, names: dict[str, Any]) -> bytes:
    """Run a program and return how it ended. A traceback goes to standard error."""
    report = DONE
    try:
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        exec(compile(source, name, "exec", dont_inherit=True), names)
    except SystemExit as request:
        if not isinstance(request.code, int | None):
            print(request.code, file=sys.stderr)
            report = FAILED
        elif request.code:
            report = FAILED
    except BaseException as error:
        report = FAILED
        traceback.print_exception(
            type(error), error, error.__traceback__ and error.__traceback__.tb_next
        )
    return report
