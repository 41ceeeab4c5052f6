"""Export a run's checkpoint as a Hugging Face folder: weights, tokenizer, chat template, model
card.

    .venv/bin/python -m training.export runs/NAME --to out/model                       # the latest checkpoint
    .venv/bin/python -m training.export runs/NAME --step best --to out/model
    hf upload OWNER/NAME out/model --private                                            # to the hub

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from common.command import UsageError, new_parser, run_command
from common.files import check_writable, replacing
from common.jsonl import read_jsonl
from common.settings import below_root
from common.stopping import stop_in_order
from episodes import registry
from training.engine.checkpoints import (
    MARK,
    best_step,
    checkpoints,
    latest_checkpoint,
    run_of,
    step_of,
)
from training.engine.resumable import config_of
from training.setup.agreement import MAX_TURNS_KEY, TEMPERATURE_KEY
from training.setup.model_folder import HUB_ID, check_model
from training.setup.reading import PARSER

CARD = "README.md"
SETTINGS = {
    "algorithm": "algorithm.adv_estimator",
    "learning rate": "actor_rollout_ref.actor.optim.lr",
    "tasks a step": "data.train_batch_size",
    "episodes a task": "actor_rollout_ref.rollout.n",
    "turns": MAX_TURNS_KEY,
    "temperature": TEMPERATURE_KEY,
    "tokens of the first prompt": "data.max_prompt_length",
    "tokens of all that follows": "data.max_response_length",
    "LoRA rank": "actor_rollout_ref.model.lora_rank",
    "vLLM's tool parser": PARSER,
}
# Files of a model folder, nothing pickled
PARTS = ("*.json", "*.jinja", "*.safetensors", "*.model", "*.txt", "*.tiktoken")


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


def card_of(name: str, agent: str, checkpoint: Path, config: DictConfig) -> str:
    """Return the card of an exported model."""
    run = run_of(checkpoint)
    base = str(OmegaConf.select(config, "actor_rollout_ref.model.path"))
    head: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["reinforcement-learning", "medical-agent-rl", agent],
    }
    if HUB_ID.fullmatch(base) and not Path(base).is_dir():
        head["base_model"] = base
    settings = [f"| {told} | {OmegaConf.select(config, key)} |" for told, key in SETTINGS.items()]
    tasks = {}
    for part in ("train", "val"):
        tasks[part] = sum(1 for _ in read_jsonl(run / "data" / f"{part}.jsonl"))
    template = Template(Path(__file__).with_suffix(".md").read_text(encoding="utf-8"))
    return template.substitute(
        tasks,
        head=yaml.safe_dump(head, sort_keys=False).strip(),
        name=name,
        run=run.name,
        step=step_of(checkpoint),
        agent=agent,
        base=Path(base).name if Path(base).is_absolute() else below_root(base),
        settings="\n".join(settings),
    )


def export(arguments: argparse.Namespace) -> None:
    """Write the folder, completely or not at all. Raises UsageError, Failure."""
    run = arguments.run
    target = arguments.to.resolve()
    if target.exists():
        raise UsageError(f"--to {arguments.to} exists; give another")
    check_writable(target, "--to")
    checkpoint = choose_checkpoint(run, arguments.step)
    config = config_of(run)
    if config is None:
        raise UsageError(f"{run} has no config.yaml; give the folder of a run")
    agent = registry.get(str(config.trainer.project_name).removesuffix("_agent"))
    with replacing(target) as draft:
        gather(checkpoint, draft)
        check_model(str(draft))
        card = card_of(target.name, agent.name, checkpoint, config)
        (draft / CARD).write_text(card, encoding="utf-8")
    print(f"{target}: {agent.name} agent, step {step_of(checkpoint)}; read {CARD}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("run", type=Path, help="folder of a run")
    step = "number of a checkpoint, latest, or best by validation; default: latest"
    add("--step", default="latest", help=step)
    add("--to", type=Path, required=True, help="folder to make; it must not exist")
    arguments = parser.parse_args(argv)
    stop_in_order()
    return run_command("export", lambda: export(arguments))


if __name__ == "__main__":
    sys.exit(main())
