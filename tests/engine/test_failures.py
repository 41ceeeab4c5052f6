"""Things that break in the middle: the run ends with a message that says what to do, and leaves nothing running."""

import os
import signal
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import psutil
import pytest

from tests.engine.conftest import Run

pytestmark = pytest.mark.engine

ENDLESS = (
    "--ci",
    "trainer.val_before_train=false",
    "data.train_batch_size=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
)


def runners(run: Run) -> list[psutil.Process]:
    children = psutil.Process(run.process.pid).children()
    return [child for child in children if "train_sql_agent" in str(child.cmdline())]


def playing(run: Run) -> bool:
    return "first_step" in run.text("timeline.json")


def test_the_others_take_over_from_a_killed_runner_and_ctrl_c_ends_everything(start: Callable[..., Run]) -> None:
    run = start(*ENDLESS, "trainer.save_freq=-1")
    run.wait_for(playing)
    runners(run)[0].kill()
    run.wait_for(lambda run: len(run.steps()) >= 3)
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.wait() == 130, run.output
    assert "ended with exit code -9" in run.output
    assert "Traceback" not in run.output
    summary = run.summary()
    assert summary["exit_reason"] == "interrupted"
    assert summary["weight_updates"] >= 3
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    played = [row for row in run.lines("episodes.jsonl") if row["step"] <= 3]
    assert len(played) == 3 * 4 * 8
    assert {(row["status"], row["cause"]) for row in played} == {("succeeded", None)}
    assert run.alive() == []


@pytest.mark.nightly  # the decision has a unit test: tests/training/test_algorithm.py
def test_the_last_runner_killed_stops_the_run(start: Callable[..., Run]) -> None:
    run = start(*ENDLESS, "--n-runners", "1")
    run.wait_for(playing)
    runners(run)[0].kill()
    assert run.wait() == 1
    assert "ended with exit code -9" in run.summary()["message"]
    assert "Traceback" not in run.output
    assert run.alive() == []


@pytest.mark.nightly  # asking vLLM whether it lives has a unit test: tests/training/test_proxy.py
def test_a_dead_vllm_stops_the_run(start: Callable[..., Run]) -> None:
    run = start(*ENDLESS)
    run.wait_for(playing)
    engines = [
        process for process in run.alive() if "VLLM::EngineCore" in " ".join([process.name(), *process.cmdline()])
    ]
    assert engines, [process.name() for process in run.alive()]
    engines[0].kill()
    assert run.wait() == 1
    summary = run.summary()
    assert "vLLM" in summary["message"], summary["message"]
    assert "--resume" in summary["message"]
    assert run.alive() == []


class DyingJudge(BaseHTTPRequestHandler):
    """Scores one answer, the known case asked before a run starts, and refuses every other."""

    alive = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, DyingJudge.alive = (200 if DyingJudge.alive else 403), False
        body = b'{"score": 0.5}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def dying_judge() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), DyingJudge)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/score"
    server.shutdown()
    server.server_close()


def test_a_judge_that_dies_skips_steps_and_then_stops_the_run(start: Callable[..., Run], dying_judge: str) -> None:
    """Nothing is trained on a reward that was not computed: not as zero, not as anything."""
    run = start("--ci-fast", REWARD_MODEL_URL=dying_judge, JUDGE_TIMEOUT="1")
    assert run.wait() == 1
    summary = run.summary()
    assert "3 steps in a row were skipped" in summary["message"], summary["message"]
    # Answers that say nothing score 0 without a judge; every other rollout is unscored.
    assert summary["rollouts"]["finished"] == 48
    assert summary["rollouts"]["unscored"] > 0.8 * 48
    assert summary["trained_tokens"] == summary["weight_updates"] == 0
    dropped = summary["dropped_tokens"]
    assert dropped.get("judge_failed", 0) + dropped.get("judge_unavailable", 0) > 0
    assert summary["canaries"]["accepted"] == 0
