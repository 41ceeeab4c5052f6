"""What the end of a runner process means, decided without an engine.

Keeps of docs/architecture.md, "What is done about what": a dead runner's rollouts are taken over, the last one stops
the run.
"""

import multiprocessing
import os

import pytest

from training.algorithm import _tend
from training.watch import RunStopped


async def test_the_end_of_the_last_runner_stops_the_run() -> None:
    runner = multiprocessing.get_context("fork").Process(target=os._exit, args=(3,))
    runner.start()
    runner.join()
    with pytest.raises(RunStopped, match=r"ended with exit code 3 .*, the last runner\..* --resume"):
        await _tend([runner], store=None)  # type: ignore[arg-type]
