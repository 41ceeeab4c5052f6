"""Export a run's checkpoint as a Hugging Face folder: weights, tokenizer, chat template, model
card.

    .venv/bin/python -m training.export runs/NAME --to out/model                       # the latest checkpoint
    .venv/bin/python -m training.export runs/NAME --step best --to out/model --evaluation outputs/evaluations/NAME
    hf upload OWNER/NAME out/model --private                                            # to the hub

Before the folder appears, transformers and vLLM load it and must answer a task of the run alike.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.command import UsageError, new_parser, run_command
from common.files import replacing
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent
from training.engine.checkpoints import MARK, best_step, checkpoints, latest_checkpoint, step_of
from training.setup.model_folder import check_model
from training.ship.export_card import CARD, evaluation_of, read_config, write_card
from training.ship.export_check import first_prompt, prove

# Files of a model folder, nothing pickled
PARTS = ("*.json", "*.jinja", "*.safetensors", "*.model", "*.txt", "*.tiktoken")
LOG = Path("logs") / "export.log"  # in the run's folder: what vLLM says


def choose_checkpoint(run: Path, step: str) -> Path:
    """Return the checkpoint of a step's number, "latest" or "best". Raises UsageError."""
    latest = latest_checkpoint(run)
    if latest is None:
        raise UsageError(
            f"{run} is no run with a complete checkpoint; expected a folder with checkpoints/{MARK}"
        )
    found = {number: path for number, path in checkpoints(run).items() if number <= step_of(latest)}
    if step == "best":
        best = best_step(run, found)
        if best is None:
            raise UsageError(
                f"--step best: no checkpoint of {run} was "
                "validated; give --step latest, or a number"
            )
        step = str(best)
    if step == "latest":
        return latest
    if not step.isdecimal() or int(step) not in found:
        there = ", ".join(map(str, sorted(found)))
        raise UsageError(
            f"--step {step}: {run} has checkpoints of the steps {there}; give one, latest or best"
        )
    return found[int(step)]


def agent_of(config: dict[str, Any]) -> Agent:
    """Return the agent that a run trained. Raises AgentError if the registry does not have it."""
    return registry.get(str(config["trainer"]["project_name"]).removesuffix("_agent"))


def gather(checkpoint: Path, folder: Path) -> None:
    """Copy the model of a checkpoint, for everyone to read."""
    model = checkpoint / "actor" / "huggingface"
    if not any(model.glob("*.safetensors")):
        raise UsageError(
            f"{checkpoint} has no model in {model.relative_to(checkpoint)}: its run left hf_model "
            "out of actor_rollout_ref.actor.checkpoint.save_contents; verl.model_merger makes one "
            "of its shards"
        )
    folder.mkdir()
    for part in PARTS:
        for path in model.glob(part):
            shutil.copyfile(path, folder / path.name)


def export(arguments: argparse.Namespace) -> None:
    """Write the folder, completely or not at all. Raises UsageError, Failure."""
    run = arguments.run
    target = arguments.to.resolve()
    if target.exists():
        raise UsageError(f"--to {arguments.to} exists; give another")
    if not target.parent.is_dir():
        raise UsageError(f"--to {arguments.to}: there is no folder {target.parent}")
    checkpoint = choose_checkpoint(run, arguments.step)
    config = read_config(run)
    agent = agent_of(config)
    scores = evaluation_of(arguments.evaluation, checkpoint) if arguments.evaluation else None
    with replacing(target) as draft:
        gather(checkpoint, draft)
        check_model(str(draft))
        proof = None
        if arguments.verify:
            prompt = first_prompt(agent, run)
            print("comparing an answer of transformers with vLLM's", file=sys.stderr)
            proof = prove(agent, prompt, draft, arguments.device, run.resolve() / LOG)
        write_card(draft, agent, checkpoint, config, scores, proof)
    print(f"{target}: {agent.name} agent, step {step_of(checkpoint)}; read {CARD}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("run", type=Path, help="folder of a run")
    step = "number of a checkpoint, latest, or best by validation; default: latest"
    add("--step", default="latest", help=step)
    add("--to", type=Path, required=True, help="folder to make; it must not exist")
    evaluation = "of this checkpoint, by evaluation.evaluate; for the card"
    add("--evaluation", type=Path, metavar="DIR", help=evaluation)
    verify = "do not load it in transformers and vLLM first"
    add("--no-verify", dest="verify", action="store_false", help=verify)
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="of that check")
    arguments = parser.parse_args(argv)
    stop_in_order()
    return run_command("export", lambda: export(arguments))


if __name__ == "__main__":
    sys.exit(main())
