"""What breaks in the middle ends the run with a message, and leaves nothing running."""

import os
import signal

import psutil
import pytest

from tests.messages import missing
from tests.runs import Run

pytestmark = pytest.mark.engine

SIZES = ("data.train_batch_size=4", "actor_rollout_ref.actor.ppo_mini_batch_size=4")
ENDLESS = ("--ci", "trainer.val_before_train=false", *SIZES)

# What a shell does for a command before & in a script.
IN_BACKGROUND = ("bash", "-c", """trap '' INT; exec "$0" "$@" """)


def runners(run: Run) -> list[psutil.Process]:
    """Those below the keeper, which is a fork of the command."""
    children = psutil.Process(run.process.pid).children()
    keepers = [child for child in children if "train_sql_agent" in str(child.cmdline())]
    return [runner for keeper in keepers for runner in keeper.children()]


def playing(run: Run) -> bool:
    return "first_step" in run.text("timeline.json")


def test_a_killed_runner_is_started_again_and_a_stop_signal_ends_everything(start):
    run = start(*ENDLESS, "trainer.save_freq=-1", within=IN_BACKGROUND)
    run.wait_for(playing)
    killed = runners(run)[0]
    killed.kill()
    run.wait_for(lambda run: len(run.steps()) >= 3)
    assert len(runners(run)) == 4
    assert killed not in runners(run)
    # A closed terminal reaches the whole group; tests/common/test_stopping.py has SIGTERM and
    # Ctrl-C.
    os.killpg(run.process.pid, signal.SIGHUP)
    assert run.wait() == 130, run.output
    assert "SIGTERM received" not in run.output  # Ray's words, three seconds before it aborts
    assert not missing(run.output, "runner-0", "exit code -9", "too: 4")
    assert "Traceback" not in run.output
    summary = run.summary()
    assert summary["exit_reason"] == "interrupted"
    assert summary["weight_updates"] >= 3
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    played = [row for row in run.lines("episodes.jsonl") if row["step"] <= 3]
    assert len(played) == 3 * 4 * 8
    assert {(row["status"], row["cause"]) for row in played} == {("succeeded", None)}
    assert run.alive() == []


@pytest.mark.nightly  # asking vLLM whether it lives has a unit test: tests/training/test_proxy.py
def test_a_dead_vllm_stops_the_run(start):
    run = start(*ENDLESS)
    run.wait_for(playing)
    names = {process: " ".join([process.name(), *process.cmdline()]) for process in run.alive()}
    engine, *_ = [process for process in names if "VLLM::EngineCore" in names[process]]
    engine.kill()
    assert run.wait() == 1
    summary = run.summary()
    assert "vLLM" in summary["message"], summary["message"]
    assert "--resume" in summary["message"]
    assert run.alive() == []
