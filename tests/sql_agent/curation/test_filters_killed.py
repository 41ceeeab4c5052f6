"""filter_with_llm as a real process: killed; no reply that arrived is
paid for twice.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from common.settings import ROOT
from sql_agent.curation import filter_with_llm
from tests.sql_agent.curation.questions import QUESTIONS, ids_of, judge, question_of


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


class Held:
    """The stand-in's answers: so many at once, the others when `opened` is set."""

    def __init__(self, answered: int) -> None:
        self.left, self.holding = answered, 0
        self.lock, self.opened = threading.Lock(), threading.Event()

    def __call__(self, body):
        with self.lock:
            self.left -= 1
            held = self.left < 0
            self.holding += held
        if held:
            self.opened.wait(300)
        return judge(body)


def held_up(program, answers, calls, seconds=300):
    """Wait until so many calls of a program hang, and nothing else of it is left to do."""
    end = time.monotonic() + seconds
    while answers.holding < calls:
        assert program.poll() is None, f"ended with {program.returncode}: {program.communicate()}"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.system
def test_killed_again_and_again_it_ends_the_same_and_pays_no_reply_twice(place, llm, teacher):
    for answered in (10, 20):
        llm.answer = Held(answered)
        program = start(place, teacher, "--concurrency", "4")
        held_up(program, llm.answer, 4)
        program.kill()
        program.communicate()
        llm.answer.opened.set()
        assert (place / "out.jsonl.journal").exists()
    llm.answer = judge
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
