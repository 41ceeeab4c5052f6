"""The journal: killed at any byte it ends the same; locked; flat in memory. And the runner of many rows."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import eta, progress
from common.eta import Eta
from common.jsonl import FileError
from common.progress import MISSING, Failed, Journal, JournalError, RunError, open_journal, run_all
from common.settings import ROOT

WORK = {"program": "test", "model": "模型", "input": "abc"}
RECORDS = [("a", {"text": "阿莫西林", "yes": True}), ("键", "\u2028 line\nbreak"), ("c", None), ("d", [1.5, "\ud83d"])]


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
    with Journal(path, WORK) as journal:
        assert [(key, journal.get(key)) for key, _ in RECORDS] == RECORDS
        assert len(journal) == 4
        assert "z" not in journal
        assert journal.get("z") is MISSING
        with pytest.raises(KeyError):
            journal.put("a", 1)


def test_killed_at_every_byte_it_ends_the_same(path):
    fill(path)
    whole = path.read_bytes()
    ends = [position for position, byte in enumerate(whole, 1) if byte == ord("\n")]
    assert len(ends) == 5
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        complete = max(0, sum(end <= length for end in ends) - 1)
        assert fill(path) == [key for key, _ in RECORDS[:complete]], f"cut at byte {length}"
        assert path.read_bytes() == whole, f"cut at byte {length}"


@settings(max_examples=60, deadline=None)
@given(records=st.dictionaries(st.text(), st.recursive(st.none() | st.text() | st.floats(allow_nan=False), st.lists)))
def test_any_key_and_value_survive(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("journal") / "j"
    fill(path, list(records.items()))
    assert fill(path, list(records.items())) == list(records)
    with Journal(path, WORK) as journal:
        assert {key: journal.get(key) for key in records} == records


def test_the_tail_a_power_loss_leaves_is_cut(path):
    fill(path, RECORDS[:2])
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 4096)
    assert fill(path) == ["a", "键"]
    with Journal(path, WORK) as journal:
        assert len(journal) == 4


def test_damage_in_the_middle_is_not_passed_over(path):
    fill(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'{"key": "x"}\n', *lines[3:]]))
    with pytest.raises(JournalError, match="damaged at byte"):
        fill(path)


@pytest.mark.parametrize("content", ["notes\n", "notes", '{"id": 1}\n', "{", "\n", '{"journal": 1, x\n'])
def test_a_foreign_file_is_left_alone(path, content):
    path.write_text(content)
    if content == "{":  # also how a journal begins
        assert fill(path) == []
        return
    with pytest.raises(JournalError, match="not a journal"):
        fill(path)
    assert path.read_text() == content


def test_other_work_is_refused_and_says_what_differs(path):
    fill(path)
    with pytest.raises(JournalError, match=r"model was '模型', now 'other'.*--force") as caught:
        Journal(path, WORK | {"model": "other"})
    assert "program" not in str(caught.value)
    with Journal(path, WORK | {"model": "other"}, fresh=True) as journal:
        assert len(journal) == 0


def test_a_second_process_is_refused(path):
    program = "import sys; from pathlib import Path; from common.progress import *\nJournal(Path(sys.argv[1]), {})"
    with Journal(path, WORK):
        done = subprocess.run([sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, text=True)
        assert "is in use by another process" in done.stderr.splitlines()[-1]
        with pytest.raises(JournalError, match="in use"):
            Journal(path, WORK, fresh=True)
    assert fill(path) == []


def test_a_full_disk_leaves_the_journal_whole(path, monkeypatch):
    with Journal(path, WORK) as journal:
        journal.put("a", 1)
        before = path.read_bytes()
        write = progress.os.pwrite
        monkeypatch.setattr(progress.os, "pwrite", lambda file, data, place: write(file, data[:7], place))
        with pytest.raises(OSError, match="full"):
            journal.put("b", 2)
        monkeypatch.undo()
        assert path.read_bytes() == before
        journal.put("b", 2)
        assert (journal.get("a"), journal.get("b")) == (1, 2)


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
        journal.remove()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["dropped.jsonl"]
    with pytest.raises(FileError, match="no folder"):
        open_journal(tmp_path / "missing" / "out.jsonl", WORK, force=True)


def test_memory_does_not_grow_with_the_rows(path):
    tracemalloc.start()
    try:
        with Journal(path, WORK) as journal:
            for number in range(2_000):
                journal.put(f"key-{number}", {"n": number})
            small = tracemalloc.get_traced_memory()[0]
            for number in range(2_000, 20_000):
                journal.put(f"key-{number}", {"n": number})
            assert tracemalloc.get_traced_memory()[0] - small < 100_000
            assert journal.get("key-19999") == {"n": 19_999}
    finally:
        tracemalloc.stop()


class Work:
    """Upper case, after a moment; the items of `bad` fail; says what was done."""

    def __init__(self, bad=()):
        self.bad, self.done, self.busy, self.busiest = set(bad), [], 0, 0

    async def __call__(self, item):
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(0.001 * (len(self.done) % 3))
        self.busy -= 1
        self.done.append(item)
        if item in self.bad:
            raise ConnectionError(f"no {item}")
        return item.upper()


def run(items, work, path, **options):
    with Journal(path, WORK) as journal:
        options = {"concurrency": 3, "title": "test", "failures": ConnectionError} | options
        outcome = asyncio.run(run_all(items, str, work, journal, **options))
        return list(outcome), outcome.failed


def test_results_come_in_the_order_of_the_items(path):
    work, items = Work(), [chr(97 + number) for number in range(20)]
    assert run(items, work, path) == ([item.upper() for item in items], {})
    assert work.busiest == 3
    again = Work()
    assert run(items, again, path)[0] == [item.upper() for item in items]
    assert again.done == []


def test_a_failed_row_is_told_and_tried_again(path):
    assert run("abcd", Work("bd"), path) == (["A", Failed("no b"), "C", Failed("no d")], {"b": "no b", "d": "no d"})
    again = Work()
    assert run("abcd", again, path) == (["A", "B", "C", "D"], {})
    assert again.done == ["b", "d"]


def test_equal_items_are_done_once(path):
    work = Work()
    assert run("aabaab", work, path)[0] == list("AABAAB")
    assert sorted(work.done) == ["a", "b"]


def test_an_endpoint_that_is_down_ends_the_run(path):
    items = [f"x{number}" for number in range(500)]
    work = Work(items[10:])
    with pytest.raises(RunError, match=r"20 rows failed one after the other, the last one: no x"):
        run(items, work, path)
    assert len(work.done) < 40
    with Journal(path, WORK) as journal:
        assert len(journal) == 10


def test_other_exceptions_end_the_run_as_they_are(path):
    with pytest.raises(ConnectionError, match="no b"):
        run("abc", Work("b"), path, failures=(), concurrency=1)
    again = Work()
    assert run("abc", again, path, concurrency=1)[0] == list("ABC")
    assert again.done == ["b", "c"]


def test_every_kill_of_the_runner_ends_the_same(path, tmp_path):
    items = list("abcdefgh")
    expected = run(items, Work(), path, concurrency=1)
    whole = path.read_bytes()
    for length in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:length])
        assert run(items, Work(), path, concurrency=1) == expected
        assert path.read_bytes() == whole


def test_progress_is_told_in_lines_where_there_is_no_terminal(path, capsys, monkeypatch):
    monkeypatch.setattr(eta, "LINE_EVERY", 0.0)
    run("abcd", Work("b"), path, concurrency=1, describe=lambda: "$0.01")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("test: 1 of 4 rows, ")
    assert lines[0].endswith(" left, $0.01")
    assert lines[-1].startswith("test: 4 of 4 rows, 1 failed, ")
    assert " left" not in lines[-1]
    run("abcd", Work(), path)
    assert "4 of 4 rows, 3 done before, " in capsys.readouterr().err.splitlines()[-1]


def test_progress_moves_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Eta("test", 10) as shown:
        for _ in range(10):
            shown.add(done=1)
    assert "test: 10 of 10 rows" in capsys.readouterr().err


def test_earlier_rows_do_not_enter_the_speed(monkeypatch):
    now = iter([0.0, 0.0, 0.0, 10.0])
    monkeypatch.setattr(eta.time, "monotonic", lambda: next(now))
    shown = Eta("test", 1_000)
    shown._bar = None
    shown.add(resumed=900)
    shown.add(done=10)
    monkeypatch.setattr(eta.time, "monotonic", lambda: 10.0)
    assert shown.line() == "test: 910 of 1,000 rows, 900 done before, 1.0/s, 0:01:30 left"


def test_a_journal_is_json_lines_anyone_can_read(path):
    fill(path, RECORDS[:1])
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"journal": 1, **WORK},
        {"key": "a", "value": {"text": "阿莫西林", "yes": True}},
    ]
