"""Draw an agent's cases from the tables of conditions: invented patients, no two alike.

consultation: the doctor reads one sentence, which leaves at least three conditions open. Hidden are a value of every
facet and whether each symptom of the complaint's conditions is there, in the patient's own words. `distinguishing` is
what a doctor who knows the tables would ask for, one after the other, until one condition is left (data/conditions/
asking.py); a patient whom that doctor would get wrong is not drawn. The columns are those of DoctorAgent-RL's files.

diagnosis: the doctor reads a summary, in English, which leaves at least three conditions open, and sees the results of
the examinations that are ordered; a patient whose key results do not settle the case is not drawn. The columns are
those of DiagAgent's files.

Some wordings of everything are kept for rows of the test file marked "unseen". The same seed gives the same bytes.

    python -m data.conditions.cases consultation --out data/consultation --force
    python -m data.conditions.cases diagnosis --out my_cases --rows train=5000,val=500,test=1000 --seed 1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.command import new_parser, run_command
from common.files import refuse_existing, replacing
from data.conditions.diagnosis_cases import draw_diagnosis_cases
from data.conditions.drawing import ROWS, Row, draw_cases
from data.conditions.table import load_tables

AGENTS = {"consultation": draw_cases, "diagnosis": draw_diagnosis_cases}


def write_cases(rows: Sequence[Row], path: Path) -> None:
    """One parquet file with the reference's columns; complete or not at all."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    consulting = "patient_information" in rows[0]["reward_model"]
    schema = _consultation_schema(rows[0]) if consulting else None  # else every column has values that tell its type
    with replacing(path) as draft:
        parquet.write_table(arrow.Table.from_pylist(list(rows), schema=schema), draft, compression="zstd")


def _consultation_schema(row: Row) -> Any:
    import pyarrow as arrow

    text, number = arrow.string(), arrow.int64()
    texts = arrow.list_(text)
    pair = arrow.struct(dict.fromkeys(("doctor_question", "patient_response"), texts))
    truth = arrow.struct(dict.fromkeys(("diagnosis", "recommendation"), text))
    record = {"ground_truth": truth, "patient_information": arrow.list_(pair), "enhanced_description": text}
    extra = dict.fromkeys(row["extra_info"], text) | {"index": number, "age": number, "distinguishing": texts}
    messages = arrow.list_(arrow.struct({"role": text, "content": text}))
    columns = {"data_source": text, "prompt": messages, "reward_model": arrow.struct(record)}
    return arrow.schema(columns | {"extra_info": arrow.struct(extra)})


def _rows(text: str) -> dict[str, int]:
    try:
        wanted = {name.strip(): int(number) for name, number in (part.split("=") for part in text.split(","))}
    except ValueError:
        wanted = {}
    if not wanted or wanted.keys() - ROWS.keys() or min(wanted.values()) < 1:
        raise argparse.ArgumentTypeError(f"expected train=N,val=N,test=N, got {text!r}")
    return wanted


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = new_parser(__doc__, prog="python -m data.conditions.cases")
    parser.add_argument("agent", choices=AGENTS, help="the agent that reads the cases")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for a file of each split")
    parser.add_argument("--rows", type=_rows, default=ROWS, help="train=N,val=N,test=N (default: 960, 96, 320)")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same bytes (default: 0)")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    options = parser.parse_args(arguments)

    def body() -> None:
        options.out.mkdir(parents=True, exist_ok=True)
        files = {split: options.out / f"{split}.parquet" for split in options.rows}
        for file in files.values():
            refuse_existing(file, options.force)
        for split, rows in AGENTS[options.agent](load_tables(), options.rows, options.seed).items():
            write_cases(rows, files[split])
            print(f"{files[split]}: {len(rows)} cases")

    return run_command("cases", body, afterwards="files not named here are as they were")


if __name__ == "__main__":
    sys.exit(main())
