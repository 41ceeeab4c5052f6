"""The proxy that a company's network asks for, and the addresses that are reached without it.

    ask_directly()                              # this machine
    ask_directly("http://10.0.0.1:4747")        # and a server of the run on another one

Most clients read HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, and would ask that proxy for the servers of
a run, which it cannot reach. They all read NO_PROXY as well, and so do the processes they start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
NAMES = ("http_proxy", "https_proxy", "all_proxy")
EXCEPTIONS = ("no_proxy", "NO_PROXY")  # some clients read the one, some the other


def named_proxies(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the variables that name a proxy, in the case in which they are set."""
    return [name for name in environment if name.lower() in NAMES and environment[name]]


def why_unusable(environment: Mapping[str, str] = os.environ) -> str:
    """Return what is wrong with the proxies that are named, or "". Without the package that speaks
    SOCKS, httpx, which agent-lightning uses, ends with an ImportError.
    """
    named = [name for name in named_proxies(environment) if environment[name].startswith("socks")]
    if not named or find_spec("socksio"):
        return ""
    return (
        f"{', '.join(named)} names a SOCKS proxy, which needs a package that no lock has; "
        "install it (pip install socksio), name an HTTP proxy, or unset the variable"
    )


def ask_directly(*addresses: str) -> None:
    """Add loopback and the hosts of `addresses` (URLs or host names) to the exceptions of the
    proxy.

    Nothing changes where no proxy is named.
    """
    if not named_proxies():
        return
    hosts = [_host(address) for address in addresses]
    for variable in EXCEPTIONS:
        known = [host for host in os.environ.get(variable, "").split(",") if host]
        if "*" not in known:
            os.environ[variable] = ",".join(dict.fromkeys([*known, *LOOPBACK, *hosts]))


def _host(address: str) -> str:
    return (urlsplit(address).hostname or address) if "://" in address else address
