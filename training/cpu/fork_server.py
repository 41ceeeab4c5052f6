"""Import the engine in one process, and fork the workers that Ray starts on this machine from it.

Importing torch, vLLM and verl takes ten seconds and half a gigabyte for each of a dozen processes.
A fork takes a tenth of a second. CUDA cannot be forked, and a cluster has other machines.
"""

import contextlib
import gc
import importlib
import json
import logging
import multiprocessing
import os
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from training.cpu.memory import give_back
from training.setup.device import THREADS, environment

logger = logging.getLogger(__name__)

CLIENT = Path(__file__).parent / "site" / "fork_client.py"
# The modules that the trainer, its workers, vLLM's server and vLLM's engine import.
ENGINE = (
    "ray",
    "vllm.v1.engine.async_llm",
    "vllm.v1.engine.core",
    "vllm.v1.worker.cpu_worker",
    "vllm.entrypoints.openai.api_server",
    "training.engine.trainer",
    "training.engine.kept_tokens",
    "training.cpu.plain_weights",
)
# Ray's library reads these two when it is imported. The first job of a Ray of our own has this
# number, and a worker is to end with this command, as it would with Ray's raylet.
JOB = "01000000"
JOB_VARIABLE = "RAY_JOB_ID"
PARENT_VARIABLE = "RAY_RAYLET_PID"
LOOK_SECONDS = 0.5
END_SECONDS = 5.0


@contextlib.contextmanager
def forking(device: str, role: str) -> Iterator[str]:
    """Yield the command that Ray takes for `python`. Its server ends with the block."""
    if device != "cpu" or role == "runner" or os.environ.get("RAY_ADDRESS"):
        yield ""
        return
    # Only this account may connect: a client may run anything
    folder = Path(tempfile.mkdtemp(prefix="fork-server-"))
    address = str(folder / "socket")
    own = str(os.getpid())
    variables = environment(device) | {JOB_VARIABLE: JOB, PARENT_VARIABLE: own}
    command = [sys.executable, "-m", "training.cpu.fork_server", address, own]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        # Ray passes the command to a shell
        yield shlex.join([sys.executable, "-I", "-S", str(CLIENT), address])
    finally:
        if server.poll() is not None:  # the run went on without it
            last = (folder / "log").read_text()[-1000:]
            logger.warning("the fork server ended with %s: %s", server.returncode, last)
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def serve(address: str, parent: int) -> None:
    """Answer requests with forks while `parent` lives. In a fork, return when its work is done."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        import_engine(parent)
        gc.collect()
        gc.freeze()  # keeps shared memory shared: no collection writes to it
        listener.settimeout(LOOK_SECONDS)
        request = None
        while request is None and os.getppid() == parent:
            # The client left before or during its request
            with contextlib.suppress(OSError, ValueError):
                request = _answer(listener)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    if request is None:
        shutil.rmtree(Path(address).parent, ignore_errors=True)
    else:
        _become(**request)


def import_engine(parent: int) -> None:
    draw_actor_classes_from_the_system()
    for name in ENGINE:
        if os.getppid() != parent:
            return
        importlib.import_module(name)
    import ray
    import setproctitle
    from vllm.v1.engine import utils

    # Otherwise it would be spawned, because of Ray's and CUDA's threads
    utils.get_mp_context = lambda: multiprocessing.get_context("fork")
    # If two libraries write process titles, the second fails
    setproctitle.setproctitle = ray._raylet.setproctitle


def draw_actor_classes_from_the_system() -> None:
    """Make Ray name actor classes without its own generator.

    Forks would inherit the generator's state and draw the same object ids. Two that start at once
    would end with "Trying to put an object that already existed".
    """
    import ray
    import ray.actor

    def from_random() -> Any:
        return ray.ActorClassID(os.urandom(ray.ActorClassID.size()))

    ray.actor.ActorClassID = SimpleNamespace(from_random=from_random)


def _answer(listener: socket.socket) -> dict[str, Any] | None:
    """Fork for the next request. Return None in the server, and in the fork what to run."""
    connection = listener.accept()[0]
    with connection:
        connection.settimeout(END_SECONDS)
        _, streams, _, _ = socket.recv_fds(connection, 1, 3)
        request: dict[str, Any] = json.loads(connection.makefile("rb").read())
        if os.fork():
            for stream in streams:
                os.close(stream)
            connection.sendall(b"+")
            return None
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return request


def _become(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    os.setpgid(0, 0)  # when a worker has ended, Ray kills every process of its group
    os.chdir(folder)
    if environment.get(JOB_VARIABLE) != JOB:
        os.execve(sys.executable, [sys.executable, *arguments], environment)
    os.environ.clear()
    os.environ.update(environment)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # each fork has inherited one state
    # The server has one thread: a fork of a process with OpenMP threads hangs
    if "torch" in sys.modules and THREADS in environment:
        sys.modules["torch"].set_num_threads(int(environment[THREADS]))
    if "MALLOC_MMAP_THRESHOLD_" in environment:  # read at the start of a program, not of a fork
        give_back()
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
