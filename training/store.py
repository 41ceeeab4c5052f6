"""The LightningStore: started by this run, or external and checked before any model is loaded.

    python -m training.store serve [--host 127.0.0.1] [--port 4747]

serves one for several processes or machines. It binds the loopback address unless told otherwise, because the store
has no authentication: bind another address only inside a closed network.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from common.command import new_parser, run_command
from common.startup import collect_rarely
from training.plan import ConfigError, Plan
from training.ports import require_free

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
    from training.live_store import RunStore, make_server, mongo_store

    store = mongo_store(plan.mongo_uri) if plan.mongo_uri else RunStore()
    server = make_server(store, plan.store_host, plan.store_port, "thread")
    await server.start()
    try:
        yield
    finally:
        store.stop_waits()
        await server.stop()


def check_external(address: str) -> None:
    """Make sure the address is a store of our agent-lightning version that accepts traces.

    Raises ConfigError: unreachable, another program or version, or without an OTLP endpoint.
    """
    import httpx
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    start = "start one with `python -m training.store serve`"
    if not address.startswith(("http://", "https://")):
        raise ConfigError(f"--external-store-address {address!r} is not a URL; expected http://HOST:PORT")
    base = address.rstrip("/")
    with httpx.Client(timeout=CHECK_SECONDS, trust_env=False) as client:
        try:
            health = client.get(base + HEALTH_PATH)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConfigError(f"no store answers at {base} ({type(error).__name__}); {start}") from None
        if health.status_code != 200:
            seen = f"{base}{HEALTH_PATH} answers {health.status_code}"
            raise ConfigError(f"{seen}: not a store of agent-lightning 0.3; {start}")
        empty = ExportTraceServiceRequest().SerializeToString()
        headers = {"content-type": "application/x-protobuf"}
        traces = client.post(base + TRACES_PATH, content=empty, headers=headers)
        if traces.status_code != 200:
            raise ConfigError(f"{base}{TRACES_PATH} answers {traces.status_code}: the store accepts no traces; {start}")


def check_mongo(uri: str) -> None:
    """Raises ConfigError when MongoDB's driver is missing or no server answers."""
    try:
        from pymongo import MongoClient
        from pymongo.errors import PyMongoError
    except ImportError:
        raise ConfigError("--mongo-uri needs MongoDB's driver: .venv/bin/python -m pip install pymongo") from None
    try:
        MongoClient(uri, serverSelectionTimeoutMS=int(CHECK_SECONDS * 1000)).admin.command("ping")
    except PyMongoError as error:
        seen = f"no MongoDB answers ({type(error).__name__})"
        raise ConfigError(f"--mongo-uri: {seen}; it must be a replica set") from None


def serve(host: str, port: int) -> None:
    """Serve an in-memory store until interrupted. Raises ConfigError: the port is in use."""
    require_free(host, port, "--port")
    from training.live_store import RunStore, make_server

    server = make_server(RunStore(), host, port, "asyncio")
    print(f"store at http://{host}:{port} (Ctrl-C stops it; its content is lost then)", flush=True)
    asyncio.run(server.run_forever())


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit code."""
    parser = new_parser(__doc__, prog="python -m training.store")
    add = parser.add_subparsers(dest="command", required=True).add_parser("serve", help="serve a store").add_argument
    add("--host", default="127.0.0.1", help="address to bind (default: loopback only)")
    add("--port", type=int, default=4747, help="port to listen on (default: 4747)")
    options = parser.parse_args(arguments)
    collect_rarely()
    return run_command("store", lambda: serve(options.host, options.port))


if __name__ == "__main__":
    sys.exit(main())
