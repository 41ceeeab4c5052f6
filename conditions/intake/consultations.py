"""Check a file of consultations and turn it into cases to practise on and dialogues to learn from.

    .venv/bin/python -m conditions.intake.consultations dialogues.jsonl --out my_consultations

FILE is Parquet, a JSON list, JSONL, or a JSON object of rows by id: with DoctorAgent-RL's columns,
or plain dialogues as ShareGPT, IMCS-21 or Alpaca write them, or texts such as 病人：我头痛
(docs/your-data.md). DIR gets, each case and dialogue once, `cases.parquet` and `dialogues.jsonl`,
and `refused.jsonl` with what was seen and expected; if more than half of the rows are refused, only
that. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Rows are counted from 1; in
JSONL a row is a line.
"""

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from common.command import Failure, UsageError, new_parser, run_command
from common.files import FileError, refuse_existing, replacing
from common.jsonl import write_jsonl
from common.terminal import watched
from conditions.intake.consultation_rows import Consultation, Message, Refused, read_consultation
from data.files import KINDS, file_records
from data.parquet import CONSULTATION, Form, write_parquet

CASES = "cases.parquet"
DIALOGUES = "dialogues.jsonl"
REFUSED = "refused.jsonl"
COLUMNS: Form = {**CONSULTATION, "extra_info": {"index": int}}


def read_file(
    path: Path, say: Callable[[str], None]
) -> tuple[list[Consultation], list[dict[str, Any]]]:
    """Return the consultations of a file, and each refused row's number and reason, which is said.

    Raises UsageError: not readable, or without rows.
    """
    if not path.is_file() or path.suffix.lower() not in KINDS:
        seen = "is of an unknown kind" if path.is_file() else "is no file"
        raise UsageError(f"{path} {seen}; expected one of consultations ({', '.join(KINDS)})")
    found = list[Consultation]()
    refused: list[dict[str, Any]] = []
    for record in watched(file_records(path), path.name):
        try:
            if record.problem:
                raise Refused(record.problem)
            if record.values:
                found.append(read_consultation(record.values))
        except Refused as refusal:
            refused.append({"row": record.number, "reason": str(refusal)})
            say(f"row {record.number}: {refusal}")
    if not found and not refused:
        raise UsageError(f"{path} has no rows; expected consultations")
    return found, refused


def whole(dialogues: Iterable[list[Message]]) -> list[list[Message]]:
    """Return each dialogue that no other dialogue continues, once."""
    by_words = {
        tuple(message["content"] for message in dialogue): dialogue for dialogue in dialogues
    }
    continued = {one for one, after in pairwise(sorted(by_words)) if after[: len(one)] == one}
    return [dialogue for words, dialogue in by_words.items() if words not in continued]


def convert(source: Path, folder: Path, force: bool, say: Callable[[str], None]) -> str:
    """Write the files into `folder`, which is made if needed, and return what became of the rows.

    Raises UsageError: see `read_file`; a file exists and not `force`. Raises Failure: more than half
    of the rows are refused, which are written alone.
    """
    if folder.is_file():
        raise FileError(f"{folder} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name in (CASES, DIALOGUES, REFUSED):
        refuse_existing(folder / name, force)
    found, refused = read_file(source, say)
    count = len(found) + len(refused)
    (folder / REFUSED).unlink(missing_ok=True)
    if refused:
        write_jsonl(folder / REFUSED, refused, force)
    if len(refused) > len(found):
        raise Failure(
            f"{len(refused)} of {count} rows are refused, more than half (see {folder / REFUSED}); "
            "expected a file of consultations"
        )
    all_cases = [each.case for each in found if each.case]
    cases = {json.dumps(case): case for case in all_cases}.values()
    all_dialogues = [each.dialogue for each in found if each.dialogue]
    dialogues = whole(all_dialogues)
    with replacing(folder / CASES) as draft:
        numbered = (case | {"extra_info": {"index": number}} for number, case in enumerate(cases))
        write_parquet(numbered, draft, COLUMNS)
        write_jsonl(folder / DIALOGUES, ({"messages": dialogue} for dialogue in dialogues), force)
    return (
        f"{folder}: {count} rows, {len(refused)} refused; "
        f"{len(cases)} cases, {len(dialogues)} dialogues; "
        f"left out: {len(all_cases) - len(cases)} cases equal to another, "
        f"{len(all_dialogues) - len(dialogues)} dialogues equal to or within another"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help=", ".join(KINDS))
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write into")
    add("--force", action="store_true", help="replace these files in DIR")
    options = parser.parse_args(arguments)

    def body() -> None:
        print(convert(options.file, options.out, options.force, partial(print, file=sys.stderr)))

    return run_command("consultations", body, afterwards="no cases or dialogues were written")


if __name__ == "__main__":
    sys.exit(main())
