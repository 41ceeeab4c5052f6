"""The card of an exported model: its run's data, configuration and curve, an evaluation with
intervals, its limits.

    write_card(folder, agent, checkpoint, config, scores, proof, adapter="merged")

Everything is read from what the run and the evaluation wrote; the card says what was not measured.
The text is `export_card.md` beside this file. Used by `training/export.py`.
"""

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
from common.settings import ROOT
from episodes.agent import Agent
from episodes.episode import Message
from training.engine.checkpoints import run_of, step_of
from training.report.summary import curve
from training.setup.agreement import MAX_TURNS_KEY, TEMPERATURE_KEY
from training.setup.model_folder import HUB_ID
from training.setup.reading import PARSER

CARD = "README.md"
ROWS = 20  # rows of the curve's table
PROVEN = (
    "Before it was written, transformers ({device}) loaded it, vLLM loaded {theirs}, and both "
    "rendered a validation task as the same {prompt_tokens} tokens and gave the same greedy reply."
)
UNPROVEN = "It was not loaded in transformers and vLLM before it was written."
USE = {
    "merged": "python -m evaluation.serve {agent} FOLDER"
    "        # with the agent's own tools and budget",
    "kept": 'peft.AutoPeftModelForCausalLM.from_pretrained("FOLDER")'
    "        # finds its base by adapter_config.json",
}
TOOLS = (
    "Its tools ({names}) are called in the form of vLLM's tool parser `{parser}`: "
    "`vllm serve FOLDER --enable-auto-tool-choice --tool-call-parser {parser}`."
)
NO_TOOLS = "It needs no tool parser: what it does stands in the words of its replies."
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
}


def read_config(run: Path) -> dict[str, Any]:
    """Return verl's tree as the run resolved it. Raises UsageError if it cannot be read."""
    try:
        found = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
        return {"trainer": found["trainer"], "data": found["data"], **found}
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise UsageError(
            f"{run / 'config.yaml'} is no run's configuration ({type(error).__name__})"
        ) from None


def evaluation_of(folder: Path, checkpoint: Path) -> dict[str, Any]:
    """Return the scores of an evaluation.

    Raises UsageError if it is not finished, or is of another checkpoint.
    """
    try:
        scores: dict[str, Any] = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
        model = scores["model"]
        _ = scores["overall"]["ci95"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"--evaluation {folder} is no finished evaluation ({type(error).__name__})"
        ) from None
    mine = f"{run_of(checkpoint).name}/checkpoints/{checkpoint.name}/"
    if mine not in model:
        raise UsageError(
            f"--evaluation {folder} is of {model}, not of {mine}; evaluate this checkpoint"
        )
    return scores


def write_card(
    folder: Path,
    agent: Agent,
    checkpoint: Path,
    config: dict[str, Any],
    scores: dict[str, Any] | None,
    proof: dict[str, Any] | None,
    adapter: str,
    opening: Sequence[Message],
) -> None:
    """Write the card. Scores and proof may be None. opening: the first text of a task that the
    policy reads.
    """
    run = run_of(checkpoint)
    base = str(config["actor_rollout_ref"]["model"]["path"])
    tree = OmegaConf.create(config)
    kept = adapter == "kept"
    head: dict[str, Any] = {
        "library_name": "peft" if kept else "transformers",
        "pipeline_tag": "text-generation",
    }
    head["tags"] = ["reinforcement-learning", "medical-agent-rl", agent.name]
    if HUB_ID.fullmatch(base) and not Path(base).is_dir():
        head["base_model"] = base
    found = {name: OmegaConf.select(tree, key) for name, key in SETTINGS.items()}
    settings = [(name, value) for name, value in found.items() if value is not None]
    versions = json.loads((run / "versions.json").read_text(encoding="utf-8")).items()
    steps = [tuple(row.values()) for row in _thinned(curve(run))]
    text = Template(Path(__file__).with_suffix(".md").read_text(encoding="utf-8")).substitute(
        head=yaml.safe_dump(head, sort_keys=False).strip(),
        name=folder.name,
        run=run.name,
        step=step_of(checkpoint),
        agent=agent.name,
        prompts=agent.prompt_version,
        kind=f"{'An adapter (LoRA) for' if kept else 'Weights, from'} {_short(base)}",
        proof=PROVEN.format(**proof, theirs="its merged model" if kept else "it")
        if proof
        else UNPROVEN,
        use=USE[adapter].format(agent=agent.name),
        parser=_parser(agent, OmegaConf.select(tree, PARSER)),
        system=_quoted(opening),
        data=_table(
            ("file", "tasks", "sha256"),
            [_data(run / "data" / f"{part}.jsonl") for part in ("train", "val")],
        ),
        configuration=_table(("setting", "value"), settings),
        versions=", ".join(f"{name} {number}" for name, number in versions),
        curve=_table(("step", "reward in training", "validation reward"), steps),
        evaluation=_evaluation(scores),
    )
    (folder / CARD).write_text(text, encoding="utf-8")


def _parser(agent: Agent, parser: str | None) -> str:
    """Return how the agent's tools are called; the run's configuration names the parser."""
    if not agent.tools:
        return NO_TOOLS
    names = ", ".join(str(tool["function"]["name"]) for tool in agent.tools)
    return TOOLS.format(names=names, parser=parser or "hermes")


def _quoted(opening: Sequence[Message]) -> str:
    """Return the system prompt as a block of code, whatever text it holds."""
    texts = [str(message["content"]) for message in opening if message["role"] == "system"]
    lines = "\n".join(texts).splitlines() or ["(none)"]
    return "\n".join(f"    {line}".rstrip() for line in lines)


def _short(base: str) -> str:
    """Return a model's name without the folders of the machine it was trained on."""
    path = Path(base)
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    return path.name if path.is_absolute() else base


def _data(path: Path) -> tuple[str, int, str]:
    return path.name, sum(1 for _ in read_jsonl(path)), file_digest(path)[:16]


def _thinned(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    every = max(1, -(-len(rows) // ROWS))
    return [
        row for number, row in enumerate(rows) if number % every == 0 or number == len(rows) - 1
    ]


def _evaluation(scores: dict[str, Any] | None) -> str:
    """Return every number that has an interval, in points of 100."""
    if not scores:
        return "It was not evaluated, beyond the validation above."
    overall = scores["overall"]
    named = {"score": "ci95"} | {
        name.removesuffix("_ci95"): name for name in overall if name.endswith("_ci95")
    }
    rows = [
        (
            name,
            f"{100 * overall[name]:.1f}",
            " to ".join(f"{100 * bound:.1f}" for bound in overall[interval]),
        )
        for name, interval in named.items()
        if overall.get(name) is not None and overall[interval]
    ]
    data = scores["data"]
    sampling = scores.get("sampling") or {}
    file = Path(data["file"]).name
    said = (
        f"{overall['n']} tasks of {file} (sha256 "
        f"{data['sha256'][:16]}), episodes each: {scores['k']}, "
    )
    said += f"temperature {sampling.get('temperature')}; points of 100."
    return f"{said}\n\n{_table(('measure', 'value', '95 % interval'), rows)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
