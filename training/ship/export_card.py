"""Write the card of an exported model, from what the run and the evaluation wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import yaml
from omegaconf import OmegaConf

from common.command import UsageError
from common.files import file_digest
from common.jsonl import read_jsonl
from common.settings import below_root
from episodes.agent import Agent
from training.engine.checkpoints import run_of, step_of
from training.report.summary import curve
from training.setup.agreement import MAX_TURNS_KEY, TEMPERATURE_KEY
from training.setup.model_folder import HUB_ID
from training.setup.reading import PARSER

CARD = "README.md"
ROWS = 20  # rows of the curve's table
PROVEN = (
    "Before it was written, transformers ({device}) and vLLM loaded it, and both "
    "rendered a validation task as the same {prompt_tokens} tokens and gave the same greedy reply."
)
UNPROVEN = "It was not loaded in transformers and vLLM before it was written."
UNEVALUATED = "It was not evaluated, beyond the validation above."
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
    "seed of the tasks' order": "data.seed",
    "vLLM's tool parser": PARSER,
}


def read_config(run: Path) -> dict[str, Any]:
    """Return verl's tree as the run resolved it. Raises UsageError if it cannot be read."""
    try:
        found = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
        return {"trainer": found["trainer"], "data": found["data"], **found}
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise UsageError(
            f"{run / 'config.yaml'} is not a run's configuration ({type(error).__name__})"
        ) from None


def evaluation_of(folder: Path, checkpoint: Path) -> dict[str, Any]:
    """Return an evaluation's scores. Raises UsageError: unfinished, or of another checkpoint."""
    try:
        scores: dict[str, Any] = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--evaluation {folder} is not a finished evaluation ({type(error).__name__})"
        ) from None
    mine = f"{run_of(checkpoint).name}/checkpoints/{checkpoint.name}/"
    if mine not in scores["model"]:
        raise UsageError(
            f"--evaluation {folder} is of {scores['model']}, not of {mine}; evaluate this one"
        )
    return scores


def write_card(
    folder: Path,
    agent: Agent,
    checkpoint: Path,
    config: dict[str, Any],
    scores: dict[str, Any] | None,
    proof: dict[str, Any] | None,
) -> None:
    """Write the card. Scores and proof may be None."""
    run = run_of(checkpoint)
    base = str(config["actor_rollout_ref"]["model"]["path"])
    head: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["reinforcement-learning", "medical-agent-rl", agent.name],
    }
    if HUB_ID.fullmatch(base) and not Path(base).is_dir():
        head["base_model"] = base
    shown_base = Path(base).name if Path(base).is_absolute() else below_root(base)
    tree = OmegaConf.create(config)
    settings = [(name, OmegaConf.select(tree, key)) for name, key in SETTINGS.items()]
    files = []
    for part in ("train", "val"):
        path = run / "data" / f"{part}.jsonl"
        files.append((path.name, sum(1 for _ in read_jsonl(path)), file_digest(path)[:16]))
    steps = [tuple(row.values()) for row in curve(run)]
    every = max(1, -(-len(steps) // ROWS))
    text = Template(Path(__file__).with_suffix(".md").read_text(encoding="utf-8")).substitute(
        head=yaml.safe_dump(head, sort_keys=False).strip(),
        name=folder.name,
        run=run.name,
        step=step_of(checkpoint),
        agent=agent.name,
        base=shown_base,
        proof=PROVEN.format(**proof) if proof else UNPROVEN,
        data=_table(("file", "tasks", "sha256"), files),
        configuration=_table(("setting", "value"), settings),
        curve=_table(("step", "reward in training", "validation reward"), steps[::-every][::-1]),
        evaluation=_evaluation(scores) if scores else UNEVALUATED,
    )
    (folder / CARD).write_text(text, encoding="utf-8")


def _evaluation(scores: dict[str, Any]) -> str:
    overall = scores["overall"]
    named = {"score": "ci95"}
    for name in overall:
        if name.endswith("_ci95"):
            named[name.removesuffix("_ci95")] = name
    rows = []
    for name, interval in named.items():
        if overall.get(name) is not None and overall[interval]:
            low, high = overall[interval]
            rows.append(
                (name, f"{100 * overall[name]:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
            )
    data = scores["data"]
    said = (
        f"{overall['n']} tasks of {Path(data['file']).name} (sha256 {data['sha256'][:16]}), "
        f"episodes each: {scores['k']}; points of 100."
    )
    return f"{said}\n\n{_table(('measure', 'value', '95 % interval'), rows)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
