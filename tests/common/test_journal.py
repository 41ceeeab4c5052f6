"""The journal: killed at any moment it ends the same, and is locked. And the runner of many rows."""

import asyncio
import subprocess
import sys

import pytest

from common.files import FileError
from common.journal import MISSING, Journal, JournalError, RunError, open_journal, run_all
from common.settings import ROOT
from tests.programs import python

WORK = {"program": "test", "model": "模型", "input": "abc"}
RECORDS = [("a", {"text": "阿莫西林", "yes": True}), ("键", "\u2028 line\nbreak"), ("c", None)]
RECORDS.append(("d", [1.5, "\ud83d"]))
PUT = """
import sys
from pathlib import Path
from common.journal import Journal
with Journal(Path(sys.argv[1]), {}) as journal:
    for number in range(len(journal), 100_000):
        journal.put(str(number), number)
        print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.jsonl.journal"


def fill(path, records=RECORDS):
    with Journal(path, WORK) as journal:
        done = [key for key, _ in records if key in journal]
        for key, value in records:
            if key not in journal:
                journal.put(key, value)
        return done


def test_what_was_put_is_there_again(path):
    assert fill(path) == []
    assert path.stat().st_mode & 0o077 == 0
    with Journal(path, WORK) as journal:
        assert [(key, journal.get(key)) for key, _ in RECORDS] == RECORDS
        assert journal.get("z") is MISSING


@pytest.mark.system
def test_a_killed_process_loses_nothing_it_was_told_is_kept(path):
    reported = 0
    for _ in range(3):
        command = [sys.executable, "-c", PUT, path]
        program = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(200):
            reported = int(program.stdout.readline())
        program.kill()
        rest = program.communicate()[0].split()
        reported = max(reported, *map(int, rest[:-1] or ["0"]))  # the last line may be cut
        with Journal(path, {}) as journal:
            assert len(journal) > reported
            kept = [journal.get(str(number)) for number in range(len(journal))]
            assert kept == list(range(len(journal)))


@pytest.mark.parametrize("force", [False, True])
def test_a_foreign_file_is_left_alone(path, force):
    path.write_text("notes\n")
    with pytest.raises(JournalError, match="not a journal"):
        Journal(path, WORK, fresh=force)
    assert path.read_text() == "notes\n"


def test_other_work_is_refused_and_says_what_differs(path):
    fill(path)
    with pytest.raises(JournalError, match=r"'模型'.*'other'.*--force") as caught:
        Journal(path, WORK | {"model": "other"})
    assert "program" not in str(caught.value)
    with Journal(path, WORK | {"model": "other"}, fresh=True) as journal:
        assert len(journal) == 0


@pytest.mark.system
def test_a_second_process_is_refused(path):
    program = "import sys; from pathlib import Path; from common.journal import *\nJournal(Path(sys.argv[1]), {})"
    with Journal(path, WORK):
        done = python("-c", program, path)
        assert "in use" in done.stderr.splitlines()[-1]
        with pytest.raises(JournalError, match="in use"):
            Journal(path, WORK, fresh=True)
    assert fill(path) == []


def test_existing_outputs_need_force_or_an_unfinished_run(tmp_path):
    output, other = tmp_path / "out.jsonl", tmp_path / "dropped.jsonl"
    other.write_text("x")
    with pytest.raises(FileError, match=r"dropped\.jsonl exists.*--force"):
        open_journal(output, WORK, force=False, others=[other])
    assert not (tmp_path / "out.jsonl.journal").exists()
    with open_journal(output, WORK, force=True, others=[other]) as journal:
        journal.put("a", 1)
    with open_journal(output, WORK, force=False, others=[other]) as journal:
        assert len(journal) == 1
    changed = WORK | {"model": "other"}
    with open_journal(output, changed, force=True, others=[other]) as journal:
        assert len(journal) == 0, "what was done for other work is thrown away"
        journal.remove()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["dropped.jsonl"]
    with open_journal(tmp_path / "missing" / "out.jsonl", WORK, force=True) as journal:
        journal.put("a", 1)
    with pytest.raises(FileError, match="no folder"):
        open_journal(other / "out.jsonl", WORK, force=True)


def test_an_endpoint_that_is_down_ends_the_run(path):
    done = []

    async def work(number):
        done.append(number)
        if number >= 10:
            raise ConnectionError(f"no {number}")

    how = {"concurrency": 3, "title": "t", "failures": ConnectionError}
    with Journal(path, WORK) as journal:
        rows = run_all(range(500), str, work, journal, **how)
        with pytest.raises(RunError, match=r"20 rows .*no \d"):
            asyncio.run(rows)
    assert len(done) < 40
    with Journal(path, WORK) as journal:
        assert len(journal) == 10
