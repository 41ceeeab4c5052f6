"""Rows as Parquet files whose columns have declared types, and the command line of the programs
that draw such rows.

    write_parquet(rows, draft, {"id": str, "age": int, "files": [str], "truth": {"diagnosis": str}})

The forms of the agents' rows stand here too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, starmap
from os import PathLike
from pathlib import Path
from typing import Any

from common.command import new_parser, run_command
from common.files import refuse_existing, replacing
from data.records import Record, as_record

Form = Mapping[str, Any]  # by name: str, int, [the form of each item], or a Form of its own
Row = Mapping[str, Any]
BATCH = 1_000  # rows held before they are written
SPLITS = ("train", "val", "test")

MESSAGES = [{"role": str, "content": str}]
# DoctorAgent-RL's and DiagAgent's columns, except extra_info.
CONSULTATION: Form = {
    "data_source": str,
    "prompt": MESSAGES,
    "reward_model": {
        "ground_truth": {"diagnosis": str, "recommendation": str},
        "patient_information": [{"doctor_question": [str], "patient_response": [str]}],
        "enhanced_description": str,
    },
}
DIAGNOSIS: Form = {
    "data_source": str,
    "prompt": MESSAGES,
    "ability": str,
    "reward_model": {"style": str, "ground_truth": str},
}
# The code agent's questions. gold: JSON of code_agent.graders.Gold. note: what the question is
# about.
CODE: Form = dict.fromkeys(("id", "task_set", "template", "difficulty", "wording", "note", "question"), str) | {
    "files": [str], "gold": str, "program": str, "sql": str,
}  # fmt: skip


def write_parquet(rows: Iterable[Row], path: Path, form: Form) -> int:
    """Write a file, with no more than BATCH rows in memory, and return how many it has."""
    import pyarrow as arrow
    from pyarrow.parquet import ParquetWriter

    source = iter(rows)
    count = 0
    with ParquetWriter(path, arrow.schema(list(_type(form))), compression="zstd") as file:
        while batch := list(islice(source, BATCH)):
            file.write_table(arrow.Table.from_pylist(batch, schema=file.schema))
            count += len(batch)
    return count


def _type(form: Any) -> Any:
    """Return the arrow type of a form."""
    import pyarrow as arrow

    if isinstance(form, Mapping):
        return arrow.struct({name: _type(part) for name, part in form.items()})
    return (
        arrow.list_(_type(form[0]))
        if isinstance(form, list)
        else {str: arrow.string(), int: arrow.int64()}[form]
    )


def parquet_records(path: str | PathLike[str]) -> Iterator[Record]:
    """Yield the rows of one Parquet file; `read_table` would add columns from folder names such as
    `a=b/`.
    """
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        rows = (
            row
            for batch in file.iter_batches(BATCH, use_threads=False)
            for row in batch.to_pylist()
        )
        yield from starmap(as_record, enumerate(rows, start=1))


def drawing_parser(program: str, doc: str | None) -> argparse.ArgumentParser:
    """Return the parser with the options that all programs share that draw rows."""
    parser = new_parser(doc, prog=f"python -m {program}")
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write into")
    add("--seed", type=int, default=0, help="same seed, same bytes (default: 0)")
    add("--force", action="store_true", help="replace what is there")
    parser.set_defaults(program=program.rpartition(".")[2])
    return parser


def write_drawn(
    options: argparse.Namespace,
    draw: Callable[[], Mapping[str, Sequence[Row]]],
    form: Form,
    what: str = "questions",
    splits: Iterable[str] = SPLITS,
) -> int:
    """Draw, write a file of each split, completely or not at all, print how many rows there are,
    and return the exit code.
    """

    def body() -> None:
        options.out.mkdir(parents=True, exist_ok=True)
        files = {split: options.out / f"{split}.parquet" for split in splits}
        for file in files.values():
            refuse_existing(file, options.force)
        for split, rows in draw().items():
            with replacing(files[split]) as draft:
                print(f"{files[split]}: {write_parquet(rows, draft, form)} {what}")

    return run_command(options.program, body, afterwards="files not named here are as they were")
