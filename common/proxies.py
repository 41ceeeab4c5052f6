"""Ask the servers of a run directly, not by a company's proxy. All clients read NO_PROXY."""

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


def is_socks(address: str) -> bool:
    return address.lower().startswith("socks")  # clients read SOCKS5:// as socks5://


def why_unusable(environment: Mapping[str, str] = os.environ) -> str:
    """Return what is wrong with the named proxies, or "": httpx needs a package for SOCKS."""
    named = [name for name in named_proxies(environment) if is_socks(environment[name])]
    if not named or find_spec("socksio"):
        return ""
    return (
        f"{', '.join(named)} names a SOCKS proxy, which needs a package that no lock has; "
        "install it (pip install socksio), name an HTTP proxy, or unset the variable"
    )


def ask_directly(*addresses: str) -> None:
    """Add loopback and the hosts of `addresses` (URLs or names) to NO_PROXY, if a proxy is named."""
    if not named_proxies():
        return
    hosts = [urlsplit(address).hostname or address for address in addresses]
    for variable in EXCEPTIONS:
        known = [host for host in os.environ.get(variable, "").split(",") if host]
        if "*" not in known:
            os.environ[variable] = ",".join(dict.fromkeys([*known, *LOOPBACK, *hosts]))
