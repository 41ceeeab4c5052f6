"""Serve the LightningStore for several processes or machines.

    .venv/bin/python -m training.store serve [--host 127.0.0.1] [--port 4747]

It binds the loopback address and needs AGL_TOKEN, which every request must carry. What it holds is
in memory: after a restart the trainer is started again with --resume auto.
"""

import asyncio
import os
import sys
from importlib import import_module

from common.access import require_token
from common.command import new_parser, run_command
from common.settings import load_settings, reveal
from common.startup import collect_rarely
from common.stopping import stop_in_order
from training.setup.plan import ConfigError
from training.setup.ports import PORT, require_free


async def serve(host: str, port: int, token: str | None) -> None:
    """Serve a store until interrupted."""
    # litellm, which agent-lightning imports, would fetch its table of prices from GitHub.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    live = import_module("training.store.live_store")  # agent-lightning takes seconds
    server = live.make_server(live.RunStore(), host, port, "asyncio", token)
    print(f"store at http://{host}:{port} (Ctrl-C stops it; its content is lost then)", flush=True)
    await server.run_forever()


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("command", choices=["serve"])
    address = "address to bind (default: loopback only); AGL_TOKEN is needed on any"
    parser.add_argument("--host", default="127.0.0.1", help=address)
    parser.add_argument("--port", type=PORT, default=4747, help="default: 4747")
    options = parser.parse_args(arguments)

    def body() -> None:
        token = reveal(load_settings().agl_token)
        require_token(options.host, token, "--host")
        if not token:
            raise ConfigError(
                "AGL_TOKEN is not set: without it every user of this machine "
                "could ask the store. Set the same one for store, trainer "
                "and runners: export AGL_TOKEN=$(openssl rand -hex 16)"
            )
        require_free(options.host, options.port, "--port")
        collect_rarely()
        asyncio.run(serve(options.host, options.port, token))

    return run_command("store", body)


if __name__ == "__main__":
    stop_in_order()
    sys.exit(main())
