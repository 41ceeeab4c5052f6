"""Rows as Parquet files whose columns have declared types.

write_parquet(rows, draft, {"id": str, "age": int, "files": [str], "truth": {"diagnosis": str}})
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from data.records import Record, as_record

Form = Mapping[str, Any]  # by name: str, int, [the form of each item], or a Form of its own
Row = Mapping[str, Any]
BATCH = 1_000  # rows held before they are written

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


def write_parquet(rows: Iterable[Row], path: Path, form: Form) -> int:
    """Write a file with at most BATCH rows in memory and return the number of rows."""
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
    import pyarrow as arrow

    if isinstance(form, Mapping):
        return arrow.struct({name: _type(part) for name, part in form.items()})
    if isinstance(form, list):
        return arrow.list_(_type(form[0]))
    return {str: arrow.string(), int: arrow.int64()}[form]


def parquet_records(path: str | PathLike[str], names: list[str] | None = None) -> Iterator[Record]:
    """Yield the rows of one Parquet file, by other `names` of its columns if given."""
    import pyarrow as arrow
    from pyarrow.parquet import ParquetFile  # read_table adds columns for folders like a=b/

    with ParquetFile(path) as file:
        number = 0
        for batch in file.iter_batches(BATCH, use_threads=False):
            for place, field in enumerate(batch.schema):
                if field.type == arrow.float32():  # by its shortest text: 0.1, not 0.10000000149
                    whole = batch.column(place).cast(arrow.string()).cast(arrow.float64())
                    batch = batch.set_column(place, field.name, whole)
            for row in batch.rename_columns(names or batch.schema.names).to_pylist():
                number += 1
                yield as_record(number, row)
