"""What the policy reads: it names what is really there, and leaves the tiny model room for a whole
episode.
"""

from __future__ import annotations

import json
import sqlite3

import pytest

from common.settings import ROOT
from data.load import load_rows
from sql_agent.prompts import COLUMNS, PROMPT_VERSION, SYSTEM_PROMPT, TOOL, first_messages
from tools.sql.query import QueryTool

MODEL = ROOT / "sql_agent" / "tiny_model"
CONTEXT = 1024


def test_the_prompt_names_every_table_and_column_of_the_database() -> None:
    connection = sqlite3.connect(f"file:{ROOT / 'data' / 'medical.db'}?mode=ro", uri=True)
    for table, columns in COLUMNS.items():
        # `source` says where a row comes from and is nothing to ask about.
        assert tuple(row[1] for row in connection.execute(f"PRAGMA table_info({table})")) == (
            *columns,
            "source",
        )
        assert f"{table}({', '.join(columns)})" in SYSTEM_PROMPT
    connection.close()


def test_the_prompt_names_the_tables_the_tool_allows(database_url: str) -> None:
    assert QueryTool(database_url).allowed_tables == COLUMNS.keys()


def test_the_bundled_model_was_taught_this_version_of_the_prompts() -> None:
    taught = json.loads((MODEL / "config.json").read_text())["prompt_version"]
    assert taught == PROMPT_VERSION, (
        "rebuild sql_agent/tiny_model: python -m training.cold_start sql --out sql_agent/tiny_model"
    )


def test_an_episode_of_three_turns_fits_the_tiny_models_context() -> None:
    from tokenizers import Tokenizer

    from training.warmup.tiny_tokenizer import render

    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    tool = QueryTool(f"sqlite:///{ROOT / 'data' / 'medical.db'}")
    for row in load_rows(ROOT / "data" / "val.parquet")[:16]:
        sql = row["sql"]
        call = {
            "name": TOOL["function"]["name"],
            "arguments": json.dumps({"sql": sql}, ensure_ascii=False),
        }
        turn = [
            {"role": "assistant", "content": None, "tool_calls": [{"function": call}]},
            {"role": "tool", "content": tool.run(sql).to_json()},
        ]
        end = {"role": "assistant", "content": row["answer"]}
        two = tokenizer.encode(render([*first_messages(row["question"]), *turn, end], [TOOL]))
        three = tokenizer.encode(
            render([*first_messages(row["question"]), *turn, *turn, end], [TOOL])
        )
        assert len(two.ids) < 450
        assert len(three.ids) < CONTEXT - 96 * 3, "no room for replies of 96 tokens"


@pytest.mark.parametrize("question", ["朵莎洛片怎么保存？", "x"])
def test_an_episode_begins_with_the_system_prompt_and_the_question(question: str) -> None:
    assert first_messages(question) == [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": question},
    ]
