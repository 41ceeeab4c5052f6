"""The settings of the SQL agent. Its database has its own."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.sql.settings import DatabaseSettings


class SqlSettings(DatabaseSettings):
    """Which tools the policy has, and what an episode earns."""

    database_tools: Literal["query", "schema"] = Field(
        "query", description="schema: also tools that list the tables."
    )
    reward_terms: str = Field(
        "rule=0.1,judge=1.0*format", description="Terms of the reward, their weights, factors."
    )
