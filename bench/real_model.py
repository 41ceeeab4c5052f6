"""Measure a training step of a real language model, with the real engine on this machine.

    make real-model
    .venv/bin/python -m bench.real_model [--steps 2] [--model models/warm]  # eight minutes, one line of JSON

It trains the diagnosis agent (4 cases x 8 episodes a step, replies of at most 32 tokens) and
reports what `bench.step` does. Without the model it measures nothing, and says so. A model that was
not warmed up earns 0 in every episode, and GRPO would leave its weights alone, so the run uses an
estimator that compares no groups: the update is the same work.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from bench._harness import main
from bench.step import report, train
from common.settings import ROOT

MODEL = ROOT / "models" / "smollm2-135m"
REPLY = 32  # tokens: those of a model that was warmed up are about as long
ALWAYS_UPDATES = "algorithm.adv_estimator=reinforce_plus_plus"


def measure(options: argparse.Namespace) -> dict[str, Any]:
    if not options.model.is_dir():
        return {"skipped": f"there is no folder {options.model}; run: make real-model"}
    program = ("train_diagnosis_agent.py", "--ci", ALWAYS_UPDATES, "--model", str(options.model))
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        os.environ["MAX_TOKENS"] = str(REPLY)
        return report(run_dir, train(run_dir, options.steps, program))


if __name__ == "__main__":
    main(
        "real_model",
        __doc__,
        measure,
        {
            "--steps": {"type": int, "default": 2, "help": "steps to measure (default: 2)"},
            "--model": {
                "type": Path,
                "default": MODEL,
                "help": "folder of the model, such as one "
                "that was warmed up (default: %(default)s)",
            },
        },
    )
