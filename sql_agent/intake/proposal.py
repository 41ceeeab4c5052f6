"""Ask the LLM of TEACHER_MODEL which foreign column is which of ours; its answer is used only after
a person's confirmation.

Only on request (`--propose`): names of columns and a few of their cells leave this machine.

table, given = confirmed_mapping(parts, None, {})
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Literal

from pydantic import BaseModel

from common.command import Failure, UsageError
from common.llm import client_from_settings
from common.settings import load_settings
from sql_agent.intake.columns import Given, mapping_line, sample
from sql_agent.intake.grid import Part
from sql_agent.tables import TABLES

# Cells of a column that the LLM sees, and characters of each
CELLS = 3
LONGEST = 40
QUESTION = """下面是一张陌生的医药数据表的列名和样例值。请判断它是哪张表，并为每一列选出含义相同的目标列。
没有合适的目标列就填 null，不要猜；每个目标列最多用一次。

目标列：
{ours}

陌生的列：
{theirs}"""


class Pair(BaseModel):
    """A foreign column, and our column of the same meaning, if there is one."""

    source: str
    column: str | None


class Proposal(BaseModel):
    """An LLM's interpretation of a foreign table."""

    table: Literal["drugs_info", "disease"]
    columns: list[Pair]


def confirmed_mapping(parts: list[Part], table: str | None, given: Given) -> tuple[str, Given]:
    """Return the table and the mapping that the LLM proposes and the user confirms; `table` and
    `given` stay unchanged.

    Raises UsageError: there are several parts; LLMError: no LLM is set or it does not answer;
    Failure: the user did not confirm.
    """
    if len(parts) != 1:
        raise UsageError(
            "--propose is for one table; choose with --part: "
            f"{', '.join(part.name for part in parts)}"
        )
    client = client_from_settings(load_settings())
    theirs = {
        source: [cell[:LONGEST] for cell in cells[:CELLS]]
        for source, cells in sample(parts[0]).items()
    }
    ours, shown = (
        json.dumps(columns, ensure_ascii=False, indent=1) for columns in (TABLES, theirs)
    )
    messages = [{"role": "user", "content": QUESTION.format(ours=ours, theirs=shown)}]
    answer = asyncio.run(client.ask(messages, Proposal, max_tokens=4096)).value
    table = table or answer.table
    chosen = dict(given)
    for pair in answer.columns:  # only existing columns, each once
        if (
            pair.column in TABLES[table].keys() - set(chosen.values())
            and pair.source in theirs.keys() - chosen.keys()
        ):
            chosen[pair.source] = pair.column
    chosen = dict.fromkeys(theirs) | chosen
    print(
        f"{client.model} takes {parts[0].name} for {table}:",
        *map(mapping_line, chosen, chosen.values()),
        sep="\n",
    )
    print("Import it so? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure(
            "the proposal was not confirmed; mend its lines in a file and give it with --mapping"
        )
    return table, chosen
