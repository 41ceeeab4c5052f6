"""The command line of the programs that draw rows, and how they write them."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from common.command import new_parser, run_command
from common.files import refuse_existing, replacing
from data.parquet import Form, Row, write_parquet

SPLITS = ("train", "val", "test")
# The code agent's questions. gold: JSON of code_agent.graders.Gold. note: what the question is
# about.
CODE: Form = dict.fromkeys(("id", "task_set", "template", "difficulty", "wording", "note", "question"), str) | {
    "files": [str], "gold": str, "program": str, "sql": str,
}  # fmt: skip


def drawing_parser(program: str, doc: str | None) -> argparse.ArgumentParser:
    parser = new_parser(doc)
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
    """Draw, write a file of each split, whole or not at all, and return the exit code."""

    def body() -> None:
        options.out.mkdir(parents=True, exist_ok=True)
        files = {split: options.out / f"{split}.parquet" for split in splits}
        for file in files.values():
            refuse_existing(file, options.force)
        for split, rows in draw().items():
            with replacing(files[split]) as draft:
                print(f"{files[split]}: {write_parquet(rows, draft, form)} {what}")

    return run_command(options.program, body, afterwards="files not named here are as they were")
