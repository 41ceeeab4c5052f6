"""The comparison with agent-lightning's own training, as far as it needs no engine: what is wrong
with its arguments and its environment, and how a peer that fails is reported.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import agl_step
from bench.agl_side.peer_settings import Settings
from bench.agl_step import measure, report, settings_of, train_peer
from common.command import Failure, UsageError
from tests.own_processes import OwnProcesses

pytestmark = pytest.mark.system

ENDS = "import sys; print('the engine broke'); sys.exit(3)"
HANGS = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
STEPS = [{"step": 1.0, "seconds": seconds, "gen": seconds / 2} for seconds in (99.0, 30.0, 40.0)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path / "peer", 3, 2)


def options(peer: Path | None, steps: int = 3, runners: int = 2) -> argparse.Namespace:
    return argparse.Namespace(peer=peer, steps=steps, runners=[runners], patience=60.0)


def play(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small program play the peer."""
    monkeypatch.setattr(agl_step, "PROGRAM", ("-c", program))
    monkeypatch.setattr(agl_step, "LOOK_EVERY_SECONDS", 0.05)


@pytest.mark.parametrize("peer", [None, Path("nowhere/bin/python"), Path(sys.executable)])
def test_without_an_environment_the_message_says_how_to_make_it(peer: Path | None) -> None:
    with pytest.raises(UsageError, match=r"requirements/peer\.txt") as caught:
        measure(options(peer))
    assert "--peer" in str(caught.value)


@pytest.mark.parametrize(("steps", "runners"), [(0, 2), (3, 0)])
def test_a_number_that_measures_nothing_is_refused(steps: int, runners: int) -> None:
    with pytest.raises(UsageError, match="expected 1 or more"):
        measure(options(Path(sys.executable), steps, runners))


def test_a_peer_that_ends_early_is_reported_with_its_last_lines(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(ENDS, monkeypatch)
    with pytest.raises(Failure, match=r"3 after 0 steps.*\nthe engine broke"):
        train_peer(Path(sys.executable), settings, 60.0)


def test_a_peer_without_progress_is_stopped_with_all_it_started(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(HANGS, monkeypatch)
    own = OwnProcesses()
    with pytest.raises(Failure, match=r"1 s after 0 steps"):
        train_peer(Path(sys.executable), settings, 1.0)
    assert own.left(at_most=0) == 0


def test_the_first_step_does_not_count_and_the_fastest_peer_does(settings: Settings) -> None:
    ours = [{"seconds": 60.0}, {"seconds": 4.0}, {"seconds": 6.0}]
    slower = [{**row, "seconds": row["seconds"] * 2} for row in STEPS]
    figures = report(ours, {2: slower, 4: STEPS}, replace(settings, runners=4))
    assert figures["vs_agl_step"] == 7.0
    assert figures["agl_seconds_by_runners"] == {2: 70.0, 4: 35.0}
    assert figures["configuration"]["runners"] == 4
    assert figures["agl_step"] == {"gen": 17.5}
