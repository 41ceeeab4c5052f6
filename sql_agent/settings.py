"""The settings of the SQL agent. Its database has its own."""

from __future__ import annotations

from pydantic import Field

from tools.sql.settings import DatabaseSettings


class SqlSettings(DatabaseSettings):
    """What an episode earns."""

    reward_terms: str = Field(
        "rule=0.1,judge=1.0*format", description="Terms of the reward, their weights, factors."
    )
