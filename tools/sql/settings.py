"""The settings of the SQL tool's database."""

from pydantic import Field

from common.settings import ROOT, Settings

DEFAULT_DATABASE = f"sqlite:///{ROOT / 'data' / 'medical.db'}"


class DatabaseSettings(Settings):
    """Which database is read, and which of its tables."""

    database_url: str = Field(
        DEFAULT_DATABASE, description="SQLAlchemy URL of the database the tool reads."
    )
    database_tables: str = Field(
        "drugs_info,disease", min_length=1, description="The tables the agent may read."
    )
    database_strict: bool = Field(
        False, description="1: refuse a database account that may do more than read."
    )

    @property
    def tables(self) -> list[str]:
        """The tables the agent may read, lower-case, in the order they are given."""
        return [name for name in map(str.strip, self.database_tables.lower().split(",")) if name]
