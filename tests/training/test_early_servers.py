"""vLLM's servers start beside the trainer's workers where that is possible, and the queue before
both; Ray and verl stand in, since importing them takes half a minute.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf

from common.access import TOKEN
from tests.training.plans import plan_of

MODULE = "training.cpu.early_servers"
ACTOR = "training.engine.actor"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the training actor begins, in this order."""
    found: list[str] = []
    queue: dict[str, Any] = {}
    stand_ins = {
        "ray": {"remote": lambda kind: kind},
        "transfer_queue": {"init": queue.update},
        MODULE: {"begin": lambda *_: found.append("servers")},
        "training.engine.kept_tokens": {"serve_kept_tokens": lambda: found.append("verl's own")},
        "training.engine.trainer": {
            "train": lambda *_: found.append("trainer" if queue else "trainer without a queue")
        },
    }
    for name, content in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
    monkeypatch.delitem(sys.modules, ACTOR, raising=False)
    monkeypatch.setenv(TOKEN, "token")
    yield found
    sys.modules.pop(ACTOR, None)


@pytest.mark.parametrize(
    ("device", "nodes", "early"), [("cpu", 1, True), ("cpu", 2, False), ("cuda", 1, False)]
)
def test_servers_begin_before_the_trainer_on_one_machine_without_accelerators_only(
    device: str, nodes: int, early: bool, begun: list[str], tmp_path: Path
) -> None:
    """The servers of other machines would be missing, and on a GPU both share its memory."""
    plan = plan_of(tmp_path, device=device)
    config = OmegaConf.create({"trainer": {"nnodes": nodes}, "transfer_queue": {"enable": True}})
    importlib.import_module(ACTOR).TrainingActor().run(config, plan)
    assert begun == (["servers", "trainer"] if early else ["verl's own", "trainer"])
