"""Turn DiagGym's and DiagAgent's JSON files into the rows that the diagnosis agent is trained and
evaluated on.

    .venv/bin/python -m conditions.intake.diagnosis --local_dir my_cases --diaggym_ref_data_path notes.json \
        --diagagent_train_data_path train.json --diagagent_test_data_path test.json

Each file is a JSON object of records by note id, or a list of records that have a `note_id`. Of
DiagGym's notes `text` is read up to "Physical Exam:", and as examinations `reformat_physical_exam`
[{exam_name, exam_results}] and `events` [{time, data {label, lab_data}}]; of DiagAgent's cases
`case_summary`, `final_diagnosis` and `recommended_exam_names`. The folder gets `train.parquet` and
`test.parquet`, or neither, with the reference's columns (docs/diagnosis.md). Each record left out
is named on stderr; if it is more than half of the cases of a file, nothing is written. Exit codes:
0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import ijson

from common.command import Failure, UsageError, new_parser, run_command
from common.files import refuse_existing, replacing
from common.terminal import watched
from conditions.intake.consultation_rows import Refused, items_of, object_of, text_of, texts_of
from conditions.table import INSTRUCTION
from data.json_rows import Object, json_events
from data.parquet import DIAGNOSIS, Form, write_parquet
from data.records import SourceError, detect_encoding, refusing

EXAMINED = "Physical Exam:"  # where the history of a note ends
SPLITS = ("train", "test")
EXTRA = {
    "split": str,
    "index": int,
    "answer": str,
    "question": str,
    "text": str,
    "key_exam_names": [str],
    "examinations": [{"name": str, "results": str}],
}
COLUMNS: Form = {**DIAGNOSIS, "extra_info": EXTRA}

Say = Callable[[str], None]
Row = dict[str, Any]


def read_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield name (note id, or place in a list from 1) and value of each record, one at a time.

    Raises SourceError: not JSON, or neither an object nor a list.
    """
    what = f"{path} cannot be read as JSON records by note id, or as a list of them"
    with refusing(what), path.open(encoding=detect_encoding(path)) as file:
        events = json_events(file)
        first = next(events)
        if first[1] == "start_map":
            yield from ijson.kvitems(chain([first], events), "", map_type=Object)
        elif first[1] == "start_array":
            items = ijson.items(chain([first], events), "item", map_type=Object)
            for number, item in enumerate(items, start=1):
                name = item.get("note_id") if isinstance(item, dict) else None
                yield f"number {number}" if name in (None, "") else str(name), item
        else:
            raise SourceError(f"{what}: it begins with {first[2]!r}")


Note = tuple[str, list[dict[str, str]]]  # its history and what was found


def examinations_of(note: dict[str, Any]) -> list[dict[str, str]]:
    """Return what a note records, each examination once, in its order. Raises Refused."""
    found: dict[str, list[str]] = {}
    for place, value in items_of(note.get("reformat_physical_exam"), "reformat_physical_exam"):
        item = object_of(value, place)
        name = text_of(item.get("exam_name"), f"{place}.exam_name")
        result = text_of(item.get("exam_results"), f"{place}.exam_results")
        found.setdefault(name, []).append(result)
    for place, value in items_of(note.get("events"), "events"):
        item = object_of(value, place)
        several = item.get("data")
        for data in several if isinstance(several, list) else [several]:
            one = object_of(data, f"{place}.data")
            name = text_of(one.get("label"), f"{place}.data.label")
            result = _shown(one.get("lab_data"), f"{place}.data.lab_data")
            time = item.get("time")
            if result:
                found.setdefault(name, []).append(f"{time}: {result}" if time else result)
    return [{"name": name, "results": "\n".join(results)} for name, results in found.items()]


def _shown(value: Any, where: str) -> str:
    if value in (None, "", {}):
        return ""  # was not measured
    if isinstance(value, dict):
        shown = {name: _shown(part, where) for name, part in value.items()}
        return "\n".join(f"{name}: {part}" for name, part in shown.items() if part)
    return str(value) if isinstance(value, int | float | Decimal) else text_of(value, where)


def read_notes(path: Path, wanted: set[str], say: Say) -> dict[str, Note | Refused]:
    """Return history and examinations of the notes that cases have, or why a note has none, which is
    said, too. Raises SourceError.
    """
    notes: dict[str, Note | Refused] = {}
    for name, value in watched(read_records(path), path.name, "records"):
        try:
            note = object_of(value, "the record")
            history = text_of(note.get("text"), "text").partition(EXAMINED)[0]
            found = examinations_of(note)
            history = text_of(history, f"text before {EXAMINED}")
            if isinstance(notes.get(name), tuple):
                raise Refused("is there twice, expected once; the first counts")
            if name in wanted:
                notes[name] = (history, found)
        except Refused as refusal:
            say(f"{path}, {name}: {refusal}")
            if name in wanted:
                notes.setdefault(name, refusal)
    return notes


def read_row(
    name: str, value: Any, notes: Mapping[str, Note | Refused], split: str, index: int
) -> Row:
    """Return a case of DiagAgent with the reference's columns. Raises Refused."""
    item = object_of(value, "the record")
    question = text_of(item.get("case_summary"), "case_summary")
    answer = text_of(item.get("final_diagnosis"), "final_diagnosis")
    key = texts_of(item.get("recommended_exam_names"), "recommended_exam_names")
    if not key:
        raise Refused("recommended_exam_names is empty, expected at least one name")
    note = notes.get(name)
    if note is None:
        raise Refused("has no note with a history of that id in --diaggym_ref_data_path")
    if isinstance(note, Refused):
        raise Refused(f"has a note that cannot be used: {note}")
    text, found = note
    return {
        "data_source": "diagnose_dataset",
        "prompt": [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": question},
        ],
        "ability": "diagnosis",
        "reward_model": {"style": "LLM", "ground_truth": answer},
        "extra_info": {
            "split": split,
            "index": index,
            "answer": answer,
            "question": question,
            "text": text,
            "key_exam_names": key,
            "examinations": found,
        },
    }


def read_rows(
    path: Path, notes: Mapping[str, Note | Refused], split: str, say: Say
) -> Iterator[Row]:
    """Yield the rows of a file of cases, and print why each record that is left out is.

    Raises SourceError: not readable. Raises Failure: after the last row, more than half left out or
    none.
    """
    kept = left_out = bare = 0
    for name, value in watched(read_records(path), path.name, "records"):
        try:
            row = read_row(name, value, notes, split, kept)
        except Refused as refusal:
            say(f"{path}, {name}: {refusal}")
            left_out += 1
        else:
            kept += 1
            bare += not row["extra_info"]["examinations"]
            yield row
    if left_out > kept or not kept:
        raise Failure(
            f"{path}: {kept} records are cases, {left_out} "
            "are not; expected a file of DiagAgent's cases"
        )
    say(f"{path}: {kept} cases, {left_out} records left out; {bare} record no examination")


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = partial(parser.add_argument, required=True, type=Path)
    add("--local_dir", metavar="DIR", help="folder to write into")
    add("--diaggym_ref_data_path", metavar="F", help="DiagGym's notes")
    add("--diagagent_train_data_path", metavar="F", help="cases to train on")
    spellings = ("--diagagent_test_data_path", "--diaagent_test_data_path")  # the reference's own
    add(*spellings, metavar="F", help="cases to evaluate on")
    parser.add_argument("--hdfs_dir", help=argparse.SUPPRESS)
    parser.add_argument("--force", action="store_true", help="replace existing files")
    options = parser.parse_args(arguments)

    def body() -> None:
        if options.hdfs_dir is not None:
            raise UsageError("--hdfs_dir is not supported: hdfs dfs -put --local_dir's folder")
        cases = {split: getattr(options, f"diagagent_{split}_data_path") for split in SPLITS}
        notes = options.diaggym_ref_data_path
        for path in (notes, *cases.values()):
            if not path.is_file():
                raise SourceError(f"{path} is no file; expected a JSON file")
        options.local_dir.mkdir(parents=True, exist_ok=True)
        files = {split: options.local_dir / f"{split}.parquet" for split in SPLITS}
        for file in files.values():
            refuse_existing(file, options.force)
        train, test = ({name for name, _ in read_records(path)} for path in cases.values())
        say = partial(print, file=sys.stderr)
        known = read_notes(notes, train | test, say)
        if both := train & test & known.keys():
            say(f"{len(both)} cases to evaluate on are also trained on, such as {min(both)}")
        with ExitStack() as stack:
            for split, path in cases.items():
                draft = stack.enter_context(replacing(files[split]))
                write_parquet(read_rows(path, known, split, say), draft, COLUMNS)

    return run_command("diagnosis", body, afterwards="nothing was written")


if __name__ == "__main__":
    sys.exit(main())
