"""Calls the database in a thread, so that many episodes share one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from episodes.outcomes import EpisodeError
from tools.sql.database import DatabaseError, MachineTooSlow


async def in_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of the call.

    Raises EpisodeError: the database failed, or the machine was too slow for it.
    """
    try:
        return await asyncio.to_thread(call, *arguments)
    except MachineTooSlow as error:
        raise EpisodeError("machine_too_slow", str(error)) from error
    except DatabaseError as error:
        raise EpisodeError("database_error", str(error)) from error
