"""TCP ports: finding a free one, and checking one."""

import socket

from common.command import number
from training.setup.plan import ConfigError

PORT = number(int, lambda value: 0 <= value <= 65535, "from 0 to 65535")


def free_port(host: str) -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def require_free(host: str, port: int, setting: str) -> None:
    """Raise ConfigError, naming the setting, if this machine cannot listen on host:port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port} ({error.strerror}); set {setting} to a free port; "
                f"{host} must be an IPv4 address of this machine"
            ) from None
