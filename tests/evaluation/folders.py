"""Folders as evaluations and training runs leave them, of any agent and of hostile texts."""

import json
from pathlib import Path
from typing import Any

from tests.corpora import cases_of, write_lines

TOLD = {"trained": False, "ids": [1, 2], "texts": ["<|user|>why?"]}
SAID = {"trained": True, "ids": [3, 4, 5, 6], "texts": ["be", "", "药", "\n"]}
TOKENS = [[TOLD, SAID | {"log_probs": [-0.05, -1.0, -0.5, -7.0]}]]
KEYS = {"data.seed": 42, "+data.group_column": "task_type", "data.x": "${data.y}"}
PRESET = {"name": "ci, cpu", "keys": KEYS}


def rollout(step: int, mode: str = "train", reward: Any = 0.5, **changes: Any) -> dict[str, Any]:
    """A line of a training run's episodes.jsonl."""
    name = f"ro-{mode}-{step}-{changes.get('index', reward)}"
    plain: dict[str, Any] = {"rollout_id": name, "group": f"g{step}", "sample": 0}
    plain |= {"mode": mode, "step": step, "status": "succeeded", "reward": reward, "cause": None}
    return plain | {"stop_reason": "answered", "terms": {"rule": 0.1}, "measures": {}, **changes}


def training_run(folder: Path, steps: int = 3) -> Path:
    """A training run's folder as a run of few steps leaves it."""
    folder.mkdir(parents=True)
    data = {"val-core/drug_field/reward/mean@1": 0.25}
    rows: list[dict[str, Any]] = [{"step": 0, "data": data}]
    for step in range(1, steps + 1):
        made = {"reward/mean": step / 10, "rollouts": 4.0, "counters/answered": 3.0}
        made = {f"episodes/{name}": value for name, value in made.items()}
        made |= {"timing_s/gen": 6.0, "timing_s/step": 8.0, "episodes/terms/rule": 0.1}
        rows.append({"step": step, "data": made})
    write_lines(folder / "metrics.jsonl", rows)
    kinds = enumerate(("drug_field", "drug_field", "two", "two"))
    lines = [rollout(0, "val", n % 2, index=n, task_type=kind) for n, kind in kinds]
    lines += [rollout(step, tokens=TOKENS) for step in range(1, steps + 1)]
    lines.append(rollout(steps, reward=None, cause="judge_failed"))
    write_lines(folder / "episodes.jsonl", lines)
    summary = {"exit_reason": "done", "model": "m", "dropped_tokens": {"judge_failed": 40}}
    (folder / "summary.json").write_text(json.dumps(summary | {"environment": {}}))
    config = "trainer: {project_name: sql_agent}\ndata: {seed: 7, x: 3, y: 3}\n"
    (folder / "config.yaml").write_text(config)
    (folder / "preset.json").write_text(json.dumps(PRESET))
    (folder / "versions.json").write_text('{"verl": "0.9.1"}')
    (folder / "timeline.json").write_text('{"engine_ready": 1795278252.66}')
    return folder


def hostile_texts() -> list[str]:
    return [case["text"] for case in cases_of(__file__, "hostile_texts")]


def hostile_records() -> list[dict[str, Any]]:
    """Return records of the SQL agent, one a hostile text, wherever an episode can hold a text."""
    return [_hostile(text, number) for number, text in enumerate(hostile_texts())]


def _hostile(text: str, number: int) -> dict[str, Any]:
    function = {"name": text, "arguments": json.dumps({"sql": text})}
    calls = [{"id": text, "type": "function", "function": function}]
    result = {"status": text, "columns": [text], "rows": [[text]], "error": text}
    roles = ("system", "user", "assistant", "tool", "tool")
    said: list[dict[str, Any]] = [{"role": role, "content": text} for role in roles]
    said[2]["tool_calls"] = calls
    said[3]["content"] = json.dumps(result | {"count": 1, "truncated": False})
    names = "task_type difficulty wording question reference answer stop_reason detail unscored"
    texts = dict.fromkeys(names.split(), text)
    numbers = {name: {text: 0.5} for name in ("terms", "measures", "facts", "checks")}
    scored = {"sample": 0, "score": number % 2, "reward": number % 2, "transcript": said}
    return {"id": f"{text}{number}", **texts, **numbers, text: {text: [text]}, **scored}
