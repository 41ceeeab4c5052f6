"""The LightningStore: started by this run, or external and checked before any model is loaded.

    python -m training.store serve [--host 127.0.0.1] [--port 4747] [--persist DIR]
    python -m training.store status http://HOST:4747

The first serves one for several processes or machines; with --persist one that is started again
goes on where it was (`training.store.kept_store`). It binds the loopback address and needs
AGL_TOKEN, which every request must carry. The second shows what waits, what is played, what ended,
and which runners were heard of.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from common.access import bearer, require_token
from common.command import new_parser, run_command
from common.startup import collect_rarely
from training.setup.plan import ConfigError, Plan
from training.setup.ports import require_free

if TYPE_CHECKING:
    import httpx

CHECK_SECONDS = 5.0
HEALTH_PATH = "/v1/agl/health"
TRACES_PATH = "/v1/traces"


@asynccontextmanager
async def serving(plan: Plan) -> AsyncIterator[None]:
    """Serve the run's own store while the block runs; nothing to do where it is external.

    `training.run.check_store` has passed.
    """
    if plan.external_store_address:
        yield
        return
    from training.store.live_store import RunStore, make_server, mongo_store

    store = mongo_store(plan.mongo_uri) if plan.mongo_uri else RunStore()
    server = make_server(store, plan.store_host, plan.store_port, "thread", plan.token)
    await server.start()
    try:
        yield
    finally:
        store.stop_waits()
        await server.stop()


def check_external(address: str, token: str | None = None) -> None:
    """Make sure the address is a store of our agent-lightning version that takes the token and
    accepts traces.

    Raises ConfigError: unreachable, another program or version, another token, or without an OTLP
    endpoint.
    """
    import httpx
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    start = "start one with `python -m training.store serve`"
    if not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"--external-store-address {address!r} is not a URL; expected http://HOST:PORT"
        )
    base = address.rstrip("/")
    with ask(token) as client:
        try:
            health = client.get(base + HEALTH_PATH)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"no store answers at {base} ({type(error).__name__}); {start}"
            ) from None
        if health.status_code != 200:
            seen = f"{base}{HEALTH_PATH} answers {health.status_code}"
            raise ConfigError(f"{seen}: not a store of agent-lightning 0.3; {start}")
        empty = ExportTraceServiceRequest().SerializeToString()
        headers = {"content-type": "application/x-protobuf"}
        traces = client.post(base + TRACES_PATH, content=empty, headers=headers)
        if traces.status_code == 401:
            raise ConfigError(refusal(base, token))
        if traces.status_code != 200:
            raise ConfigError(
                f"{base}{TRACES_PATH} answers {traces.status_code}: the store accepts no traces; {start}"
            )


def check_mongo(uri: str) -> None:
    """Raises ConfigError when MongoDB's driver is missing or no server answers."""
    try:
        from pymongo import MongoClient
        from pymongo.errors import PyMongoError
    except ImportError:
        raise ConfigError(
            "--mongo-uri needs MongoDB's driver: .venv/bin/python -m pip install pymongo"
        ) from None
    try:
        MongoClient(uri, serverSelectionTimeoutMS=int(CHECK_SECONDS * 1000)).admin.command("ping")
    except PyMongoError as error:
        seen = f"no MongoDB answers ({type(error).__name__})"
        raise ConfigError(f"--mongo-uri: {seen}; it must be a replica set") from None


def ask(token: str | None) -> httpx.Client:
    """A client that trusts what OpenSSL trusts, SSL_CERT_FILE included."""
    import ssl

    import httpx

    trust = ssl.create_default_context()
    return httpx.Client(timeout=CHECK_SECONDS, trust_env=False, headers=bearer(token), verify=trust)


def refusal(base: str, token: str | None) -> str:
    """What to say of an answer 401."""
    seen = "refuses this AGL_TOKEN" if token else "asks for AGL_TOKEN, and it is not set"
    return f"the store at {base} {seen}; set it to what the store was started with"


async def serve(host: str, port: int, token: str | None, folder: Path | None) -> None:
    """Serve a store until interrupted, kept in a folder, if any.

    Raises ConfigError: the folder cannot be used.
    """
    # litellm, which agent-lightning imports, would fetch its table of prices from GitHub.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from training.store.kept_store import KeptStore
    from training.store.live_store import RunStore, make_server

    store = await KeptStore.open(folder) if folder else RunStore()
    server = make_server(store, host, port, "asyncio", token)
    content = f"its content stays in {folder}" if folder else "its content is lost then"
    print(f"store at http://{host}:{port} (Ctrl-C stops it; {content})", flush=True)
    await server.run_forever()


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit code."""
    parser = new_parser(__doc__, prog="python -m training.store")
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
        from common.llm import reveal
        from common.settings import load_settings

        token = reveal(load_settings().agl_token)
        if options.command == "status":
            from training.store.store_status import look

            return print(look(options.url, token))
        require_token(options.host, token, "--host")
        if not token:
            raise ConfigError(
                "AGL_TOKEN is not set: without it whoever is on this machine could ask the store. Set the same one for "
                "store, trainer and runners: export AGL_TOKEN=$(openssl rand -hex 16)"
            )
        require_free(options.host, options.port, "--port")
        collect_rarely()
        asyncio.run(serve(options.host, options.port, token, options.persist))
        return None

    return run_command("store", body)


if __name__ == "__main__":
    sys.exit(main())
