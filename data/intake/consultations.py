"""Check a file of consultations and turn it into cases to practise on and dialogues to learn from.

    python -m data.intake.consultations train.parquet --out my_consultations
    python -m data.intake.consultations dialogues.jsonl --out my_consultations --force

FILE is Parquet, a JSON list or JSONL. A row has one of two forms:

- The columns of DoctorAgent-RL: `prompt` [{role, content}], `reward_model` {ground_truth {diagnosis, recommendation},
  patient_information [{doctor_question, patient_response}], enhanced_description}. With `response`, the doctor's next
  reply, it is a turn of a dialogue: the turns, in any order, become one dialogue again.
- A plain dialogue: {"messages": [{"role", "content"}, ...], "diagnosis", "recommendation"}. Also accepted: `dialogue`,
  `dialog`, `conversation`, `conversations` for `messages`; the roles are doctor, assistant, 医生, patient, user, 患者,
  病人 and system. What the doctor says before the patient's first words is left out; what the patient answers is a
  question; what follows the patient's last words is the advice where there is a diagnosis without `recommendation`,
  else left out. Replies may have the form below already. Without a diagnosis it is a dialogue and no case.

Written into DIR, each complete or not at all, each case and dialogue once; either file may be without rows:

- `cases.parquet`: the columns of DoctorAgent-RL, the prompt being the complaint alone. What else a row has is left out.
- `dialogues.jsonl`: {"messages": [...]}, user and assistant in turn, from the complaint to the doctor's last reply.
  The patient's words are bare and there is no system prompt: whoever trains on them frames them as an episode does. A
  reply is an optional <think> block and one <answer>, `Question:` (`问题：`) or `Diagnosis:` (`诊断：`) with
  `Recommendation:` (`建议：`). Replies of the reference are kept as they are, even with several questions in one.

Each refused row is named with what was seen and expected; if it is more than half of them, nothing is written. Exit
codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Rows are counted from 1; in JSONL a row is a line.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from common.command import Failure, UsageError, new_parser, run_command
from common.files import FileError, refuse_existing, replacing
from common.jsonl import write_jsonl
from common.terminal import watched
from data.intake.consultation_rows import Consultation, Message, Refused, read_consultation
from data.intake.sources import open_parts
from data.parquet import CONSULTATION, Form, write_parquet

KINDS = (".parquet", ".json", ".jsonl", ".ndjson")
CASES, DIALOGUES = "cases.parquet", "dialogues.jsonl"
COLUMNS: Form = {**CONSULTATION, "extra_info": {"index": int}}


def _digest(value: Any, before: bytes = b"") -> bytes:
    return blake2b(before + json.dumps(value, ensure_ascii=False).encode(), digest_size=16).digest()


def _replies(dialogue: list[Message]) -> list[bytes]:
    """A digest of the dialogue up to each of the doctor's replies."""
    digests = [b""]
    for message in dialogue:
        digests.append(_digest(message["content"], digests[-1]))
    return digests[2::2]


Rows = Callable[[], Iterator[tuple[int, "Consultation | Refused"]]]


def open_rows(path: Path) -> Rows:
    """What reads a file's rows from the first one each time: their numbers, and what each is. Memory: a batch.

    Raises:
        UsageError: no such file, of another kind, or not readable; reading may too.
    """
    if not path.is_file() or path.suffix.lower() not in KINDS:
        seen = "is of an unknown kind" if path.is_file() else "is no file"
        raise UsageError(f"{path} {seen}; expected one of consultations ({', '.join(KINDS)})")
    (part,) = open_parts(str(path))

    def rows() -> Iterator[tuple[int, Consultation | Refused]]:
        for record in watched(part.records(), path.name):
            if record.problem:
                yield record.number, Refused(record.problem)
            elif record.values:
                yield record.number, _read(record.values)

    return rows


def _read(values: dict[str, Any]) -> Consultation | Refused:
    try:
        return read_consultation(values)
    except Refused as refusal:
        return refusal


def look_through(rows: Rows, say: Callable[[str], None]) -> tuple[int, int, set[bytes]]:
    """Say why each refused row is; returns how many rows there are and are refused, and the digests of the dialogues
    that another row continues.

    Raises:
        Failure: more than half are refused.
        UsageError: there are no rows.
    """
    count, refused, continued = 0, 0, set[bytes]()
    for number, found in rows():
        count += 1
        if isinstance(found, Refused):
            refused += 1
            say(f"row {number}: {found}")
        else:
            continued.update(_replies(found.dialogue)[:-1])
    if not count:
        raise UsageError("the file has no rows; expected consultations")
    if 2 * refused > count:
        raise Failure(f"{refused} of {count} rows are refused, more than half; expected a file of consultations")
    return count, refused, continued


def convert(source: Path, folder: Path, force: bool, say: Callable[[str], None]) -> str:
    """Write both files into `folder`, which is made if needed; returns what became of the rows.

    Raises:
        UsageError, Failure: see `open_rows` and `look_through`; or a file exists and not `force`.
    """
    if folder.is_dir():
        for name in (CASES, DIALOGUES):
            refuse_existing(folder / name, force)
    elif folder.exists():
        raise FileError(f"{folder} is a file; give a folder")
    rows = open_rows(source)
    count, refused, continued = look_through(rows, say)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / CASES) as draft:
        cases = write_parquet(cases_of(rows), draft, COLUMNS)
        dialogues = write_jsonl(folder / DIALOGUES, dialogues_of(rows, continued), force)
    return f"{folder}: {count} rows, {refused} refused; {cases} cases, {dialogues} dialogues"


def cases_of(rows: Rows) -> Iterator[dict[str, Any]]:
    """Every case once, numbered from 0."""
    seen = set[bytes]()
    for _, found in rows():
        if not isinstance(found, Refused) and found.case and _new(_digest(found.case), seen):
            yield found.case | {"extra_info": {"index": len(seen) - 1}}


def dialogues_of(rows: Rows, continued: set[bytes]) -> Iterator[dict[str, Any]]:
    """Every dialogue once that no row continues."""
    seen = set(continued)
    for _, found in rows():
        if not isinstance(found, Refused) and found.dialogue and _new(_replies(found.dialogue)[-1], seen):
            yield {"messages": found.dialogue}


def _new(digest: bytes, seen: set[bytes]) -> bool:
    known = digest in seen
    seen.add(digest)
    return not known


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, prog="python -m data.intake.consultations")
    parser.add_argument("file", type=Path, metavar="FILE", help=", ".join(KINDS))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write into")
    parser.add_argument("--force", action="store_true", help=f"replace {CASES} and {DIALOGUES} in DIR")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)

    def body() -> None:
        print(convert(options.file, options.out, options.force, lambda line: print(line, file=sys.stderr)))

    return run_command("consultations", body, afterwards="nothing was written")


if __name__ == "__main__":
    sys.exit(main())
