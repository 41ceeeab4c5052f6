"""The work folder OUT.training of a training that makes a model folder.

It keeps checkpoints until the result is written, so that a killed command goes on when it is given
again. Other data, model or flags are refused.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.command import UsageError
from common.files import check_writable, locked
from common.jsonl import read_object, write_text

BEGUN = "begun.json"


def work_path(out: Path) -> Path:
    return out.with_name(f"{out.name}.training")


def check_out(out: Path, force: bool) -> None:
    """Raise UsageError if `out` exists and may not be replaced, or cannot be made."""
    check_writable(out.parent, "--out")
    if out.exists() and not (out / "config.json").is_file():
        raise UsageError(f"--out {out} exists and is no model folder; give another folder")
    if out.exists() and not force:
        raise UsageError(f"--out {out} exists; give --force to replace it, or another folder")


@contextmanager
def work_folder(out: Path, fingerprint: Mapping[str, Any], force: bool) -> Iterator[Path]:
    """Yield the folder for checkpoints, with those of this training if it began before.

    Raises UsageError: another training runs there, or began there and `force` is not given, or the
    folder has other files.
    """
    work = work_path(out)
    begun = work / BEGUN
    work.mkdir(parents=True, exist_ok=True)
    with locked(work):
        if any(work.iterdir()) and not begun.is_file():
            raise UsageError(
                f"{work} holds files of no training; remove it or choose another --out"
            )
        was = read_object(begun) if begun.is_file() else fingerprint
        other = [name for name, value in fingerprint.items() if was.get(name) != value]
        if other and not force:
            raise UsageError(
                f"{work} holds the beginning of a training with other {', '.join(other)}; give the "
                "same command to go on with it, or --force to begin anew"
            )
        if other:
            for path in work.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        if not begun.is_file():
            write_text(begun, json.dumps(fingerprint) + "\n", force=True)
        yield work
        shutil.rmtree(work)
