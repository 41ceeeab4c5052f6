"""Check a run's store, and a store that this process does not serve."""

import ssl

import httpx

from common.access import bearer, require_token
from common.proxies import ask_directly
from training.setup.plan import ConfigError, StorePlan
from training.setup.ports import require_free

CHECK_SECONDS = 5.0
HEALTH_PATH = "/v1/agl/health"
WAITS = "/v1/agl/waits"  # the requests that stay open (training/store/live_store.py)


def check_store(store: StorePlan) -> None:
    """Raise ConfigError if the store's settings contradict each other or cannot be used."""
    if store.external_address and store.managed:
        raise ConfigError(
            "--external-store-address was given; set AGL_MANAGED_STORE=0, too (also: false, no, off)"
        )
    if not store.managed and not store.external_address:
        raise ConfigError("AGL_MANAGED_STORE=0 needs --external-store-address http://HOST:PORT")
    if not store.token and (store.external_address or store.role != "both"):
        raise ConfigError(
            "AGL_TOKEN is not set: store, trainer and runners that are started one by one need the "
            "same one: export AGL_TOKEN=$(openssl rand -hex 16)"
        )
    if store.external_address:
        ask_directly(store.external_address)
        check_external(store.external_address, store.token)
    elif store.role != "runner":
        require_token(store.host, store.token, "AGL_SERVER_HOST")
        require_free(store.host, store.port, "AGL_SERVER_PORT")


def check_external(address: str, token: str | None = None) -> None:
    """Raise ConfigError if no store of `training.store` takes the token."""
    start = "start one with `.venv/bin/python -m training.store serve`"
    if not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"--external-store-address {address!r} is not a URL; expected http://HOST:PORT"
        )
    base = address.rstrip("/")
    trust = ssl.create_default_context()  # what OpenSSL trusts, SSL_CERT_FILE included
    try:
        answer = httpx.post(
            f"{base}{WAITS}/queue",
            json={"seconds": 0},
            headers=bearer(token),
            timeout=CHECK_SECONDS,
            trust_env=False,
            verify=trust,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        seen = f"no store answers at {base} ({type(error).__name__})"
        raise ConfigError(f"{seen}; {start}") from None
    if answer.status_code == 401:
        seen = "refuses this AGL_TOKEN" if token else "asks for AGL_TOKEN, and it is not set"
        raise ConfigError(f"the store at {base} {seen}; set it to what the store was started with")
    if answer.status_code != 200:
        seen = f"{base} answers {answer.status_code}"
        raise ConfigError(f"{seen}: not a store of `training.store`; {start}")
