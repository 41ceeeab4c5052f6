"""A run of an agent that thinks and answers over four turns, for tests/engine/test_thinking.py.

    python tests/engine/thinker.py RUN_DIR MODEL_DIR PORT [--keep-thinking]

The policy has the bundled tiny model's weights. What opens and closes its tool calls is renamed to
<think> and </think> in the tokenizer, so that it thinks where it was taught to call a tool; the
chat template drops earlier thoughts.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import agentlightning as agl
import httpx

from episodes import registry
from sql_agent.prompts import TOOL, first_messages

TURNS = 4
TEMPERATURE = 0.3  # at 1 so small a model, asked what it never was, writes bytes that are no text
RESULT = '<tool_response>\n[{"storage": "密封，置阴凉处"}]\n</tool_response>'
QUESTIONS = (
    "朵莎洛片的贮藏方法是什么？",
    "维宁片的有效期是多久？",
    "安康颗粒的成份是什么？",
    "康平胶囊的用法用量是什么？",
)


class Thinker(agl.LitAgent[dict[str, Any]]):
    """Four replies of the policy, each after a turn of the user; the reward is how often it
    thought.
    """

    async def training_rollout_async(
        self, task: dict[str, Any], resources: Any, rollout: Any
    ) -> float:
        llm = resources["main_llm"]
        url = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id) + "/chat/completions"
        messages = first_messages(task["question"])
        function = TOOL["function"]
        messages[0]["content"] += f"\n{function['name']}(sql): {function['description']}"
        async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
            for turn in range(TURNS):
                body = {"model": llm.model, "messages": messages, **llm.sampling_parameters}
                answer = await client.post(url, json=body, headers={"Authorization": "Bearer none"})
                text = answer.raise_for_status().json()["choices"][0]["message"]["content"]
                messages.append({"role": "assistant", "content": text})
                messages.append(
                    {"role": "user", "content": RESULT if turn % 2 == 0 else QUESTIONS[turn]}
                )
        thoughts = sum(
            "</think>" in message["content"]
            for message in messages
            if message["role"] == "assistant"
        )
        reward = thoughts / TURNS + 0.001 * random.random()
        note = {
            "terms": {"thoughts": thoughts},
            "reward": reward,
            "unscored": None,
            "stop_reason": "answered",
        }
        agl.emit_annotation(
            {"episode": json.dumps({**note, "turns": TURNS, "counters": {"thoughts": thoughts}})}
        )
        return reward


def main(run_dir: Path, model: Path, port: int, keep: bool) -> int:
    """One training step; returns the exit code."""
    from tests.training.plans import plan_of
    from training.setup.model_folder import check_model
    from training.setup.presets import choose
    from training.setup.verl_config import build_config
    from training.start.run import run

    plan = plan_of(
        run_dir,
        model=str(model),
        max_turns=TURNS,
        temperature=TEMPERATURE,
        max_tokens=60,
        episode_timeout=120.0,
        tools=False,
        keep_thinking=keep,
        store_port=port,
    )
    check_model(plan.engine.model, 1024, plan.engine.tools)
    rows = model.parent / "rows.jsonl"
    rows.write_text("".join(json.dumps({"question": question}) + "\n" for question in QUESTIONS))
    files = {"train": str(rows), "val": str(rows)}
    preset = choose(registry.get("sql"), "smoke", "cpu", 1)
    config = build_config(plan.engine, run_dir, files, preset, [])
    config.trainer.test_freq = -1
    config.trainer.logger = ["file"]
    return run(Thinker(), config, plan, time.time())


if __name__ == "__main__":
    sys.exit(
        main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), "--keep-thinking" in sys.argv)
    )
