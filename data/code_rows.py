"""The file form of the code agent's questions: one parquet schema for every bundled set.

write_rows(rows, Path("data/code/val.parquet"))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.files import replacing

# Texts but for `files`, a list of them. gold: JSON of code_agent.graders.Gold. note: what the question is about.
COLUMNS = (
    "id", "task_set", "template", "difficulty", "wording", "note", "question", "files", "gold", "program", "sql",
)  # fmt: skip


def write_rows(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """One file, complete or not at all."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    schema = arrow.schema(
        {name: arrow.list_(arrow.string()) if name == "files" else arrow.string() for name in COLUMNS}
    )
    with replacing(path) as draft:
        parquet.write_table(arrow.Table.from_pylist(list(rows), schema=schema), draft, compression="zstd")
