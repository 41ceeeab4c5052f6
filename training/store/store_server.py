"""Serve the LightningStore for several processes or machines, or show the state of one.

    .venv/bin/python -m training.store serve [--host 127.0.0.1] [--port 4747] [--persist DIR]
    .venv/bin/python -m training.store status http://HOST:4747

It binds the loopback address and needs AGL_TOKEN, which every request must carry. One with
--persist goes on where it was when it is started again. The status has what waits, what is played,
what ended, and which runners were heard of.
"""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from pathlib import Path

from common.access import require_token
from common.command import new_parser, run_command
from common.llm import reveal
from common.settings import load_settings
from common.startup import collect_rarely
from training.setup.plan import ConfigError
from training.setup.ports import require_free
from training.store.store_status import look


async def serve(host: str, port: int, token: str | None, folder: Path | None) -> None:
    """Serve a store, kept in a folder if one is given, until interrupted. Raises ConfigError."""
    # litellm, which agent-lightning imports, would fetch its table of prices from GitHub.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    kept = import_module("training.store.kept_store")  # agent-lightning takes seconds
    store = await kept.KeptStore.open(folder) if folder else kept.RunStore()
    server = kept.make_server(store, host, port, "asyncio", token)
    content = f"its content stays in {folder}" if folder else "its content is lost then"
    print(f"store at http://{host}:{port} (Ctrl-C stops it; {content})", flush=True)
    await server.run_forever()


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("serve", help="serve a store").add_argument
    add(
        "--host",
        default="127.0.0.1",
        help="address to bind (default: loopback only); AGL_TOKEN is needed on any",
    )
    add("--port", type=int, default=4747, help="port to listen on (default: 4747)")
    add(
        "--persist",
        type=Path,
        metavar="DIR",
        help="keep all of it in this folder, and go on from what is there",
    )
    add = commands.add_parser("status", help="what a store does").add_argument
    add("url", metavar="URL", help="http://HOST:PORT")
    options = parser.parse_args(arguments)

    def body() -> None:
        token = reveal(load_settings().agl_token)
        if options.command == "status":
            return print(look(options.url, token))
        require_token(options.host, token, "--host")
        if not token:
            raise ConfigError(
                "AGL_TOKEN is not set: without it every user of this machine "
                "could ask the store. Set the same one for store, trainer "
                "and runners: export AGL_TOKEN=$(openssl rand -hex 16)"
            )
        require_free(options.host, options.port, "--port")
        collect_rarely()
        asyncio.run(serve(options.host, options.port, token, options.persist))
        return None

    return run_command("store", body)
