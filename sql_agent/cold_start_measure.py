"""How well a small model does the task: the agent's loop without a server, on Hugging Face's `generate`.

    python -m sql_agent.cold_start_measure sql_agent/tiny_model            # validation questions, greedy and T=1
    python -m sql_agent.cold_start_measure FOLDER --file data/test.parquet --samples 4

Queries run in the project's tool and answers are scored by the offline reference judge. An episode succeeds when the
judge gives 1 and a query that ran read an allowed table. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data.load import DataError, load_rows
from scoring.judge import ReferenceJudge
from sql_agent.agent import Episode
from sql_agent.prompts import TOOL, TOOL_NAME, first_messages
from sql_agent.reward import score_episode
from sql_agent.task import Task
from tools.query import QueryTool
from utils.settings import ROOT, load_settings

CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
NEW_TOKENS = 96
MAX_TURNS = 3


def parse_call(text: str) -> dict[str, Any] | None:
    """Return the first well-formed tool call in a reply, as vLLM's hermes parser would find it; else None."""
    found = CALL.search(text)
    try:
        call = json.loads(found[1]) if found else None
        return call if isinstance(call["arguments"], dict) and call["name"] else None  # type: ignore[index]
    except (ValueError, TypeError, KeyError):
        return None


def generate(
    model: Any, tokenizer: Any, conversations: Sequence[list[dict[str, Any]]], temperature: float
) -> list[str]:
    """Return one reply for each conversation; temperature 0 is greedy."""
    import torch

    texts = [
        tokenizer.apply_chat_template(c, tools=[TOOL], add_generation_prompt=True, tokenize=False)
        for c in conversations
    ]
    batch = tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)
    sampling = (
        {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        if temperature
        else {"do_sample": False}
    )
    with torch.inference_mode():
        made = model.generate(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=NEW_TOKENS, **sampling
        )
    replies = tokenizer.batch_decode(made[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    return [str(reply) for reply in replies]


def play(model: Any, tokenizer: Any, questions: Sequence[str], tool: QueryTool, temperature: float) -> list[Episode]:
    """Run an episode for every question, all of them at once, turn by turn."""
    episodes = [Episode(messages=list(first_messages(question))) for question in questions]
    open_ones = list(episodes)
    for turn in range(1, MAX_TURNS + 1):
        if not open_ones:
            break
        for episode, reply in zip(
            open_ones, generate(model, tokenizer, [e.messages for e in open_ones], temperature), strict=True
        ):
            episode.turns = turn
            _take(episode, reply, tool, last=turn == MAX_TURNS)
        open_ones = [episode for episode in open_ones if not episode.stop_reason]
    return episodes


def _take(episode: Episode, reply: str, tool: QueryTool, last: bool) -> None:
    """Add a reply to the episode: execute its tool call, or end with it."""
    call = None if last else parse_call(reply)
    if call is None:
        episode.answer, episode.stop_reason = reply.strip() or None, "answered" if reply.strip() else "no_answer"
        episode.messages.append({"role": "assistant", "content": reply})
        return
    sql = call["arguments"].get("sql")
    if call["name"] != TOOL_NAME or not isinstance(sql, str):
        episode.stop_reason = "bad_tool_call"
        return
    result = tool.run(sql)
    episode.tool_results.append(result)
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"], ensure_ascii=False)}
    said = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call", "type": "function", "function": function}],
    }
    episode.messages += [said, {"role": "tool", "tool_call_id": "call", "content": result.to_json()}]


def measure(folder: Path, file: Path, samples: int, seed: int, database_url: str) -> dict[str, Any]:
    """Return success, mean reward and the share of episodes that queried, greedy and at temperature 1."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tasks, tool = [Task.from_row(row) for row in load_rows(file)], QueryTool(database_url)
    report: dict[str, Any] = {"file": file.name, "questions": len(tasks), "samples": samples}
    for name, temperature, repeats in (("greedy", 0.0, 1), ("sampled", 1.0, samples)):
        repeated = tasks * repeats
        episodes = play(model, tokenizer, [task.question for task in repeated], tool, temperature)
        report[name] = asyncio.run(_summary(repeated, episodes))
    return report


async def _summary(tasks: Sequence[Task], episodes: Sequence[Episode]) -> dict[str, float]:
    judge = ReferenceJudge()
    rewards = [await score_episode(task, episode, judge) for task, episode in zip(tasks, episodes, strict=True)]
    count = len(rewards)
    right = [r.terms.get("judge", 0.0) > 0.999 and r.terms["rule"] > 0 for r in rewards]
    return {
        "success": round(sum(right) / count, 3),
        "reward": round(sum(r.total or 0.0 for r in rewards) / count, 3),
        "queried": round(sum(bool(episode.tool_results) for episode in episodes) / count, 3),
        "turns": round(sum(episode.turns for episode in episodes) / count, 2),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sql_agent.cold_start_measure", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--file", type=Path, default=ROOT / "data" / "val.parquet")
    parser.add_argument("--samples", type=int, default=4, help="episodes a question at temperature 1")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    try:
        report = measure(
            arguments.folder, arguments.file, arguments.samples, arguments.seed, load_settings().database_url
        )
    except (DataError, OSError) as error:
        print(f"cold_start_measure: {error}", file=sys.stderr)
        return 1
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
