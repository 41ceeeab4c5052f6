"""Stores that tests start as programs."""

import time

from training.setup.plan import ConfigError
from training.store.store_checks import check_external

PATIENCE_SECONDS = 120.0


def wait_for_store(address: str, token: str) -> None:
    """Wait until a store answers. Raises ConfigError: it never does."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return check_external(address, token)
        except ConfigError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
