"""Serve a whole agent as an OpenAI-compatible endpoint behind which it plays, and a page.

    .venv/bin/python -m evaluation.serve sql runs/NAME                       # starts vLLM itself; http://127.0.0.1:8010
    .venv/bin/python -m evaluation.serve consultation provider/NAME          # any provider of litellm
    .venv/bin/python -m evaluation.serve code NAME --base-url http://127.0.0.1:8000/v1
    AGL_TOKEN=... .venv/bin/python -m evaluation.serve sql runs/NAME --host 0.0.0.0

MODEL is what `evaluation.evaluate --model` takes. Runs until Ctrl-C. docs/evaluate-and-serve.md
tells what requests and answers hold. Exit codes: 1 failed, 2 wrong usage, 130 interrupted.
"""

import argparse
import asyncio
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import httpx
import uvicorn

from common.access import is_loopback, require_token
from common.command import Failure, new_parser, positive, run_command
from common.connections import Server
from common.language import said
from common.settings import WORK, Settings, load_settings, reveal
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent, Options
from episodes.episode import AgentError, Task
from episodes.play_and_score import AgentFault, tasks_of
from episodes.turns import with_turns
from evaluation.endpoint import build
from evaluation.players import MODELS, add_flags, model_player, opened, reply_tokens
from evaluation.run_folder import TRAINING, Run
from evaluation.visits import Host
from training.setup.ports import PORT

LOGS = WORK / "outputs" / "serve"
NAMES = ("127.0.0.1", "localhost", "[::1]")  # of this machine, for itself
SECONDS_TO_STOP = 3
SECONDS_BETWEEN = 2.0  # between two looks whether the model's server lives
SECONDS_TO_ANSWER = 5.0
MOST_MISSED = 3  # refused connections in a row
MOST_CONNECTIONS = 1024  # more are answered 503; those that wait are fewer (common.connections)


def parse_arguments(
    argv: Sequence[str] | None, settings: Settings
) -> tuple[Agent, argparse.Namespace]:
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    add = parser.add_argument
    add("model", metavar="MODEL", help=MODELS)
    where = "address to listen on; another than this machine's own needs AGL_TOKEN"
    add("--host", default="127.0.0.1", help=where)
    add("--port", type=PORT, default=8010, help="0: a free one; default: 8010")
    most = "episodes at a time, later ones wait; default: 64"
    add("--concurrency", type=positive(int), default=64, help=most)
    cases = "the cases a visitor may choose; default: the run's own validation, else the test file"
    add("--data", type=Path, help=cases)
    add_flags(parser, settings)
    arguments = parser.parse_args(argv)
    return registry.get(arguments.agent), arguments


def serve(agent: Agent, arguments: argparse.Namespace, settings: Settings) -> None:
    """Listen until interrupted. Raises UsageError, Failure, OSError: what is missing or taken."""
    token = reveal(settings.agl_token)
    require_token(arguments.host, token, "--host")
    name = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    names = (*NAMES, name) if is_loopback(arguments.host, "--host") else ("*",)
    player = model_player(agent, arguments.model, arguments.base_url, settings)
    arguments.data = arguments.data or cases_of(agent, arguments.model)
    agent.complete(arguments)
    own = registry.own_options(agent, arguments)
    arguments.max_tokens = arguments.max_tokens or reply_tokens(agent, player, arguments.thinking)
    settings = with_turns(agent, settings, arguments.max_turns)
    tasks = checked_tasks(agent, arguments.data, settings, own)
    family = socket.AF_INET6 if ":" in arguments.host else socket.AF_INET
    with (
        socket.create_server((arguments.host, arguments.port), family=family) as listener,
        opened(agent, player, LOGS / agent.name, arguments, settings) as (environment, endpoint),
    ):
        assert endpoint is not None, player
        places = asyncio.Semaphore(arguments.concurrency)
        host = Host(agent, environment, endpoint, settings, tasks, places)
        model = Path(arguments.model)
        app = build(host, model.name if model.exists() else arguments.model, token, names)
        url = f"http://{name}:{listener.getsockname()[1]}/"
        ready = said("{url} is the {agent} agent; Ctrl-C ends it", url=url, agent=agent.name)
        print(ready, flush=True)
        config = uvicorn.Config(
            app,
            log_level="warning",
            timeout_graceful_shutdown=SECONDS_TO_STOP,
            limit_concurrency=MOST_CONNECTIONS,
        )
        server = Server(config)
        ours = player.kind == "served"
        if player.kind != "litellm":  # its providers are asked by calls alone
            asked = (f"{endpoint.base_url}/models", host, server, ours)
            Thread(target=watch, args=asked, daemon=True).start()
        server.run(sockets=[listener])
        if ours and not host.alive:
            raise Failure("the model's server has ended; start this again")


def cases_of(agent: Agent, model: str) -> Path:
    """Return the validation tasks of the run that made the model, else the agent's test file."""
    for folder in (Path(model), Path(model).parent.parent):  # a run, or a checkpoint in it
        cases = folder / "data" / "val.jsonl"
        if cases.is_file() and Run(folder, TRAINING, "", folder).agent == agent.name:
            return cases
    return agent.splits["test"]


def checked_tasks(
    agent: Agent, cases: Path, settings: Settings, options: Options
) -> dict[str, Task]:
    """Return a file's cases for the page by id, none where the test file's database is another.

    Raises AgentError: a run would answer from another database than it was trained on.
    """
    rows = agent.rows(cases)
    try:
        agent.check({cases.name: rows}, settings, options)
        return {task.id: task for task in tasks_of(agent, rows, settings)}
    except (AgentError, AgentFault) as error:
        if cases != agent.splits["test"]:
            raise
        print(f"the page offers no cases: {error}", file=sys.stderr, flush=True)
        return {}


def watch(url: str, host: Host, server: uvicorn.Server, ours: bool) -> None:
    """Note whether the model's server answers, and end `server` where one of ours is gone. A server
    that is only slow counts as alive.
    """
    missed = 0
    with httpx.Client(timeout=SECONDS_TO_ANSWER) as client:
        while host.alive or not ours:
            try:
                client.get(url)
                missed = 0
            except httpx.ConnectError:
                missed += 1
            except httpx.HTTPError:
                missed = 0
            host.alive = missed < MOST_MISSED
            time.sleep(SECONDS_BETWEEN)
    server.should_exit = True


def main(argv: Sequence[str] | None = None) -> int:
    stop_in_order()

    def body() -> None:
        settings = load_settings()
        serve(*parse_arguments(argv, settings), settings)

    return run_command("serve", body)


if __name__ == "__main__":
    sys.exit(main())
