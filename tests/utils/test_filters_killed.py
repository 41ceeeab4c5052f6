"""filter_with_llm as a real process: killed, interrupted, started twice; no reply that arrived is
paid for twice.

Keeps of docs/data.md, "Killed, stopped, failed": what was paid for is not lost.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter

from common.jsonl import write_jsonl
from common.settings import ROOT
from tests.utils.questions import QUESTIONS, ids_of, judge, number_of, question_of
from utils import filter_with_llm


def first(*options):
    return filter_with_llm.main(["in.jsonl", "--output", "out.jsonl", *options])


def start(place, teacher, *options):
    program = [
        sys.executable,
        ROOT / "utils" / "filter_with_llm.py",
        "in.jsonl",
        "--output",
        "out.jsonl",
        *options,
    ]
    return subprocess.Popen(
        program, cwd=place, env=teacher, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def wait_for(condition, program, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert program.poll() is None, f"ended with {program.returncode}: {program.communicate()}"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_killed_again_and_again_it_ends_the_same_and_pays_no_reply_twice(place, llm, teacher):
    llm.delay = 0.05
    journal = place / "out.jsonl.journal"
    for killed_at in (10, 40):
        program = start(place, teacher, "--concurrency", "4")
        wait_for(lambda: llm.answered > killed_at, program)  # noqa: B023
        program.kill()
        program.communicate()
        assert journal.exists()
    program = start(place, teacher, "--concurrency", "4")
    assert program.wait() == 0, program.communicate()
    assert [len(ids_of(place / name)) for name in ("out.jsonl", "out.dropped.jsonl")] == [40, 20]
    calls = Counter(question_of(body) for body in llm.requests)
    assert set(calls) == set(QUESTIONS)
    # Only what was in flight at a kill, whose reply never arrived, may be asked again: 2 kills, 4
    # calls at once.
    assert sum(calls.values()) - 60 <= 2 * 4
    interrupted = [(place / name).read_bytes() for name in ("out.jsonl", "out.dropped.jsonl")]
    assert first("--force") == 0
    assert [
        (place / name).read_bytes() for name in ("out.jsonl", "out.dropped.jsonl")
    ] == interrupted


def test_without_its_journal_no_call_is_made_twice(place, llm):
    write_jsonl(
        place / "in.jsonl",
        [{"id": str(n), "question": QUESTIONS[n]} for n in range(1, 6)],
        force=True,
    )
    llm.answer = lambda body: "x" if number_of(question_of(body)) == 5 else judge(body)
    assert first("--concurrency", "1") == 1
    journal = place / "out.jsonl.journal"
    assert journal.exists()
    llm.answer = judge
    assert first() == 0
    expected = (place / "out.jsonl").read_bytes()
    calls = len(llm.requests)
    (place / "out.jsonl").unlink()
    (place / "out.dropped.jsonl").unlink()
    assert first() == 0
    assert (place / "out.jsonl").read_bytes() == expected
    assert len(llm.requests) == calls


def test_ctrl_c_keeps_the_journal(place, llm, teacher):
    llm.delay = 0.1
    program = start(place, teacher)
    wait_for(lambda: llm.answered > 10, program)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=20)
    assert program.returncode == 130
    assert errors.splitlines()[-1].startswith(
        "filter_with_llm: interrupted; results so far are kept"
    )
    assert "Traceback" not in errors
    assert "Warning" not in errors
    assert (place / "out.jsonl.journal").exists()
    assert not (place / "out.jsonl").exists()
    asked = len(llm.requests)
    assert first() == 0
    assert len(llm.requests) <= 60 + 8
    assert len(llm.requests) > asked


def test_a_second_process_on_one_output_is_refused(place, llm, teacher):
    llm.delay = 0.3
    program = start(place, teacher, "--concurrency", "2")
    wait_for(lambda: len(llm.requests) > 2, program)
    second = start(place, teacher)
    _, errors = second.communicate(timeout=30)
    assert second.returncode == 2
    assert errors.splitlines() == [
        "filter_with_llm: out.jsonl.journal is in use by another process; wait for it, or use another output"
    ]
    llm.delay = 0.0
    assert program.wait() == 0, program.communicate()
