"""The settings of the SQL agent. Those of its database are in tools/sql/settings.py."""

from tools.sql.settings import DatabaseSettings


class SqlSettings(DatabaseSettings):
    """What an episode earns."""

    reward_terms: str = "rule=0.1,judge=1.0*format"
