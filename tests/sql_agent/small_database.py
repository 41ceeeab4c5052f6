"""A database with both tables of the SQL agent and one row in each."""

import sqlite3

import pytest

from sql_agent.prompts import COLUMNS

STORAGE, CAUSE = "密封，20℃以下干燥处保存", "受凉"
COMMENTS = {"med_name": "med_name /* 药品名称 */", "storage": "storage /* 贮藏 */"}


@pytest.fixture
def database_url(tmp_path):
    path = tmp_path / "small.db"
    connection = sqlite3.connect(path)
    for table, columns in COLUMNS.items():
        described = ",\n".join(COMMENTS.get(name, name) for name in columns)
        connection.execute(f"CREATE TABLE {table} (\n{described}\n)")
    connection.execute(
        "INSERT INTO drugs_info (id, med_name, storage) VALUES (1, '朵莎洛片', ?)", [STORAGE]
    )
    connection.execute(
        "INSERT INTO disease (id, disease_name, cause) VALUES (1, '图帕氏病', ?)", [CAUSE]
    )
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"
