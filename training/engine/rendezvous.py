"""Make torch's processes meet on one address of this machine, not on all of them (docs/gpu.md).

torch serves its store on every interface, without authentication.
"""

import importlib
import os
import socket
from typing import Any

import psutil

# Imported by name as a module: torch.distributed has a function of the same name.
_rendezvous: Any = importlib.import_module("torch.distributed.rendezvous")
_TCPStore = _rendezvous.TCPStore


class OneAddress:
    """A worker extension of vLLM that adds nothing: it makes the worker import this module."""


def _store(host_name: str, port: int, is_master: bool = False, **options: Any) -> Any:
    # The interface by which this machine reaches the address. Nothing is sent
    with socket.socket(_family(host_name), socket.SOCK_DGRAM) as probe:
        probe.connect((host_name, port))
        own = probe.getsockname()[0]
    interfaces = []
    for name, addresses in psutil.net_if_addrs().items():
        if own in [found.address for found in addresses]:
            interfaces.append(name)
    if not interfaces:
        raise RuntimeError(f"no interface has the address {own}, by which {host_name} is reached")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", interfaces[0])
    # "=" means this interface, not all whose names begin so
    os.environ.setdefault("NCCL_SOCKET_IFNAME", f"={interfaces[0]}")
    if not is_master:
        return _TCPStore(host_name, port, is_master=False, **options)
    listening = socket.create_server((host_name, port), family=_family(host_name))
    return _TCPStore(
        host_name, port, is_master=True, master_listen_fd=listening.detach(), **options
    )


def _family(host_name: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host_name else socket.AF_INET


_rendezvous.TCPStore = _store
