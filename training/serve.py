"""Serve a model folder, a hub id or a run's checkpoint by vLLM on the loopback address.

    .venv/bin/python -m training.serve sql_agent/tiny_model                  # prints the address, serves until Ctrl-C
    .venv/bin/python -m training.serve runs/NAME --port 8000                 # a run's latest checkpoint

    with serve("runs/NAME", log=Path("vllm.log")) as server:                 # in a program
        server.base_url, server.name

Any client of an OpenAI-compatible endpoint can use it. Tool calls are parsed as in training. The
CPU part was run. The GPU part was not.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from common import parent
from common.command import Failure, new_parser, positive, run_command
from common.language import said
from common.settings import Settings
from common.stopping import stop_in_order
from common.terminal import progress
from episodes.agent import SERVED_NAME, Agent, Options
from training.engine.checkpoints import PREFIX, latest_checkpoint
from training.setup.device import check_libraries, choose_device, environment, in_bfloat16
from training.setup.model_folder import CACHE_BLOCK, cache_bytes, check_model
from training.setup.plan import ConfigError
from training.setup.ports import PORT, free_port, require_free
from training.setup.reading import reading_flags

HOST = "127.0.0.1"
# By its path, because a model may be named relative to this folder
WITH_PARENT = (sys.executable, "-P", parent.__file__)
# Shares of a card that vLLM takes: of a server alone, and of a partner beside a policy, which
# takes half of it itself
ALONE = 0.9
BESIDE = 0.25
START_SECONDS = 1800.0  # a model of the hub is downloaded first
STOP_SECONDS = 20.0
POLL_SECONDS = 0.5
LOG_LINES = 12
CPU_SEQUENCES = 64


class ServeError(Failure):
    """The server did not start or died. The message has its last words."""


@dataclass(frozen=True)
class Server:
    """A server that answers. name: to give as `model` in a request."""

    model: str
    base_url: str
    name: str
    process: subprocess.Popen[bytes]


def servable(model: str, tools: bool = True) -> str:
    """Return the model folder or hub id meant. A run means its latest checkpoint.

    Raises ConfigError: no checkpoint, or no model that can chat (and, with `tools`, call them).
    """
    folder = Path(model)
    if (folder / "checkpoints").is_dir():
        latest = latest_checkpoint(folder)
        if latest is None:
            raise ConfigError(
                f"the run {folder} has no complete checkpoint; train it further, or name another"
            )
        folder = latest
    if folder.name.startswith(PREFIX) and (folder / "actor").is_dir():
        folder = folder / "actor" / "huggingface"
    found = str(folder) if folder.is_dir() else model
    check_model(found, tools=tools)
    return found


@contextlib.contextmanager
def serve(
    model: str,
    log: Path,
    device: str = "auto",
    port: int = 0,
    n_gpus: int = 1,
    tools: bool = True,
    memory: float = ALONE,
    tool_parser: str | None = None,
    thinking: bool = False,
) -> Iterator[Server]:
    """Start vLLM, wait until it answers, and stop it and its children at the end.

    model: see `servable`. port: 0 picks a free one. n_gpus: over which the model is split. tools:
    whether clients send tools. memory: share of a GPU's. tool_parser: None for the one that fits.
    thinking: let a model think that can be told not to. Raises ConfigError: it cannot be served
    here. Raises ServeError: it did not start, or ended before something in the body failed.
    """
    model = servable(model, tools)
    device = choose_device(device)
    check_libraries(device)
    if port:
        require_free(HOST, port, "--port")
    port = port or free_port(HOST)
    log.parent.mkdir(parents=True, exist_ok=True)
    begins = log.stat().st_size if log.exists() else 0
    reading = reading_flags(model, log, tools, tool_parser, thinking)
    asked = command(model, device, port, n_gpus, memory)
    variables = os.environ | environment(device, model) | {"VLLM_HOST_IP": HOST}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*WITH_PARENT, str(os.getpid()), *asked, *reading],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches this program first, which then stops the server
            start_new_session=True,
        )
    try:
        server = _wait(process, model, f"http://{HOST}:{port}", log, begins)
        try:
            yield server
        except Exception as error:
            if process.poll() is not None:
                raise _failed(process, log, begins) from error
            raise
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)


@contextlib.contextmanager
def serve_environment(
    agent: Agent, settings: Settings, options: Options, folder: Path, device: str | None = "auto"
) -> Iterator[dict[str, Any]]:
    """Serve the models that episodes talk to. Yield options with their addresses.

    device: None: episodes are played elsewhere. Raises ConfigError, ServeError.
    """
    wanted = agent.services(settings, options) if device else ()
    served = dict(options)
    with contextlib.ExitStack() as stack:
        for service in wanted:
            log = folder / f"{service.option}.log"
            serving = serve(service.model, log, str(device), tools=False, memory=BESIDE)
            served[service.option] = stack.enter_context(serving).base_url
        yield served


def command(model: str, device: str, port: int, n_gpus: int, memory: float = ALONE) -> list[str]:
    words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    words += ["--model", model, "--served-model-name", SERVED_NAME]
    words += ["--host", HOST, "--port", str(port), "--max-model-len", "auto"]
    words += ["--middleware", "training.proxy.doors.ServedDoor", "--allowed-origins", "[]"]
    # Clients decide on sampling, not a file in the folder
    words += ["--generation-config", "vllm"]
    words += ["--tensor-parallel-size", str(n_gpus), "--uvicorn-log-level", "warning"]
    if not Path(model).is_dir():
        words += ["--load-format", "safetensors"]
    if device == "cuda":
        # Not run
        words += ["--dtype", "auto", "--gpu-memory-utilization", str(memory)]
        words += ["--worker-extension-cls", "training.engine.rendezvous.OneAddress"]
    else:
        kind = "bfloat16" if in_bfloat16(model) else "float32"
        cache = cache_bytes(model, CPU_SEQUENCES, None, kind)
        # Compiling takes over a minute
        words += ["--dtype", kind, "--enforce-eager", "--max-num-seqs", str(CPU_SEQUENCES)]
        words += ["--kv-cache-memory-bytes", str(cache), "--block-size", str(CACHE_BLOCK)]
        words += ["--worker-extension-cls", "training.cpu.token_sampler.ServedOnCpu"]
    return words


def _wait(
    process: subprocess.Popen[bytes], model: str, address: str, log: Path, begins: int
) -> Server:
    end = time.monotonic() + START_SECONDS
    with progress(said("waiting for vLLM"), None, unit="") as bar:
        while process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(httpx.HTTPError):  # it does not answer yet
                reply = httpx.get(f"{address}/v1/models", timeout=5, trust_env=False)
                if reply.status_code == 200:
                    return Server(model, f"{address}/v1", SERVED_NAME, process)
            bar.update()
            time.sleep(POLL_SECONDS)
    raise _failed(process, log, begins)


def _failed(process: subprocess.Popen[bytes], log: Path, begins: int) -> ServeError:
    code = process.poll()
    seen = f"did not answer within {START_SECONDS:g} s"
    if code is not None:
        seen = f"ended with code {code}"
    lines = log.read_bytes()[begins:].decode("utf-8", "replace").splitlines()
    last = [line for line in lines if "Error" in line] or lines
    return ServeError("\n".join([f"vLLM {seen} ({log}):", *last[-LOG_LINES:]]))


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("model", help="model folder, hub id, run folder or global_step_N folder")
    add("--port", type=PORT, default=0, help="default: a free one")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--n-gpus", type=positive(int), default=1, help="GPUs the model is split over")
    add("--no-tools", dest="tools", action="store_false", help="clients send no tools")
    tool_parser = "vLLM's parser of tool calls; default: the one that fits"
    add("--tool-parser", metavar="NAME", help=tool_parser)
    thinking = "let a model think whose template can turn it off"
    add("--thinking", action="store_true", help=thinking)
    add("--log", type=Path, default=Path("runs/serve.log"), help="the server's output")
    arguments = parser.parse_args(argv)
    stop_in_order()

    def body() -> None:
        print(f"starting vLLM, log in {arguments.log}", flush=True)
        with serve(**vars(arguments)) as server:  # the flags are named like its parameters
            told = f"{server.base_url} serves {server.model} as {server.name!r}; Ctrl-C ends it"
            print(told, flush=True)
            server.process.wait()
            raise ServeError("the server ended")  # `serve` says how

    return run_command("serve", body)


if __name__ == "__main__":
    sys.exit(main())
