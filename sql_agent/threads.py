"""Calls the database in a thread, so that many episodes share one process."""

import asyncio
from collections.abc import Callable
from typing import Any

from episodes.episode import Episode, Policy, ToolSpec
from episodes.outcomes import EpisodeError
from episodes.tool_loop import Tool, play_with_tools
from sql_agent.reward import Query
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


async def play_with_queries(
    policy: Policy, prompt: str, question: str, spec: ToolSpec, run: Callable[[str], Query]
) -> Episode:
    """Play an episode whose events are the queries that the policy ran."""
    queries: list[Query] = []

    async def query(sql: str) -> str:
        made: Query = await in_thread(run, sql)
        queries.append(made)
        return made.result.to_json()

    episode = await play_with_tools(policy, prompt, question, [Tool(spec, query)])
    episode.events = queries
    return episode
