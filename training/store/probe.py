"""Asking a store that this process does not serve, before anything depends on it."""

from __future__ import annotations

import ssl

import httpx

from common.access import bearer
from training.setup.plan import ConfigError

CHECK_SECONDS = 5.0
HEALTH_PATH = "/v1/agl/health"
TRACES_PATH = "/v1/traces"


def check_external(address: str, token: str | None = None) -> None:
    """Make sure the address is a store of our agent-lightning version that takes the token and
    accepts traces.

    Raises ConfigError: unreachable, another program or version, another token, or without an OTLP
    endpoint.
    """
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
    trust = ssl.create_default_context()
    return httpx.Client(timeout=CHECK_SECONDS, trust_env=False, headers=bearer(token), verify=trust)


def refusal(base: str, token: str | None) -> str:
    """What to say of an answer 401."""
    seen = "refuses this AGL_TOKEN" if token else "asks for AGL_TOKEN, and it is not set"
    return f"the store at {base} {seen}; set it to what the store was started with"
