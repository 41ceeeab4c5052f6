"""What the policy reads names what is really there, and the bundled model was taught it."""

import sqlite3

from common.settings import ROOT
from sql_agent.prompts import COLUMNS, SYSTEM_PROMPT


def test_the_prompt_names_every_table_and_column_of_the_database():
    connection = sqlite3.connect(f"file:{ROOT / 'data' / 'medical.db'}?mode=ro", uri=True)
    for table, columns in COLUMNS.items():
        # `source` says where a row comes from and is nothing to ask about.
        assert tuple(row[1] for row in connection.execute(f"PRAGMA table_info({table})")) == (
            *columns,
            "source",
        )
        assert f"{table}({', '.join(columns)})" in SYSTEM_PROMPT
    connection.close()
