"""The settings of the SQL tool's database."""

from pydantic import Field

from common.settings import ROOT, Settings

DEFAULT_DATABASE = f"sqlite:///{ROOT / 'data' / 'medical.db'}"


class DatabaseSettings(Settings):
    """Which database is read, and which of its tables."""

    database_url: str = DEFAULT_DATABASE
    database_tables: str = Field("drugs_info,disease", min_length=1)
    database_strict: bool = False  # 1: refuse an account that may do more than read

    @property
    def tables(self) -> list[str]:
        """The tables the agent may read, lower-case, in the order they are given."""
        return [name for name in map(str.strip, self.database_tables.lower().split(",")) if name]
