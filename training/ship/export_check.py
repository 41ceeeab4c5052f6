"""Check that transformers and vLLM load an exported folder and answer a task of its run alike.

Token ids of the prompt and the greedy reply must be equal.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.command import Failure
from common.settings import load_settings
from episodes.agent import Agent
from episodes.episode import Message, Policy, ToolSpec
from episodes.outcomes import PolicyStop
from episodes.turns import turns_of, with_turns
from training.serve import serve
from training.setup.chat_template import SWITCH
from training.setup.device import choose_device

TOKENS = 64  # of the reply
SHOWN = 80  # characters of each in a message


class FirstPrompt(Policy):
    """A policy that keeps its first prompt, and stops."""

    messages: list[Message]
    tools: list[ToolSpec]

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        self.messages = list(messages)
        self.tools = list(tools)
        raise PolicyStop("max_turns")


def first_prompt(agent: Agent, run: Path) -> FirstPrompt:
    """Return the first prompt of a validation task of the run."""
    settings = with_turns(agent, load_settings(), None)
    task = agent.task(agent.rows(run / "data" / "val.jsonl")[0], settings)
    policy = FirstPrompt(turns_of(task, settings))
    with contextlib.closing(agent.open(settings, {})) as environment:
        asyncio.run(environment.play(task, policy))
    return policy


def prove(
    agent: Agent, prompt: FirstPrompt, folder: Path, device: str, log: Path
) -> dict[str, Any]:
    """Compare both. Return the prompt's tokens and the reply. Raises Failure, ServeError."""
    device = choose_device(device)
    ids, text = by_transformers(folder, prompt, device)
    with serve(str(folder), log, device, tools=bool(agent.tools)) as server:
        theirs, answer = by_vllm(server.base_url, server.name, prompt, ids)
    if theirs != ids:
        raise Failure(f"vLLM renders {len(theirs)} tokens, transformers {len(ids)}, or others")
    if answer != text:
        raise Failure(f"vLLM answers {answer[:SHOWN]!r}, transformers {text[:SHOWN]!r}")
    return {"prompt_tokens": len(ids), "reply": text, "device": device}


def by_transformers(folder: Path, prompt: FirstPrompt, device: str) -> tuple[list[int], str]:
    """Return the prompt's token ids and the greedy reply."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    tokenizer = AutoTokenizer.from_pretrained(folder)
    kind: Any = "auto" if device == "cuda" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=kind).to(device).eval()
    arguments: dict[str, Any] = {"tools": prompt.tools or None, "add_generation_prompt": True}
    arguments[SWITCH] = False  # as it is served
    ids = tokenizer.apply_chat_template(
        prompt.messages, return_dict=True, return_tensors="pt", **arguments
    ).to(device)
    greedy = GenerationConfig(
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=model.generation_config.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.inference_mode():
        [out] = model.generate(**ids, generation_config=greedy)
    read = ids["input_ids"][0].tolist()
    return read, tokenizer.decode(out[len(read) :], skip_special_tokens=True)


def by_vllm(base_url: str, name: str, prompt: FirstPrompt, ids: list[int]) -> tuple[list[int], str]:
    """Return a server's answer to the same: the prompt as it renders it, and its reply to `ids`."""
    import httpx

    with httpx.Client(base_url=base_url.removesuffix("v1"), timeout=300, trust_env=False) as client:
        tools = {"tools": prompt.tools} if prompt.tools else {}
        body = {"model": name, "messages": prompt.messages, **tools}
        one_token = {"max_tokens": 1, "return_token_ids": True}
        rendered = client.post("v1/chat/completions", json={**body, **one_token})
        asked = {"model": name, "prompt": ids, "temperature": 0, "max_tokens": TOKENS}
        reply = client.post("v1/completions", json=asked)
    for response in (rendered, reply):
        if response.status_code != 200:
            raise Failure(f"vLLM refuses {response.request.url.path}: {response.text[:300]}")
    return rendered.json()["prompt_token_ids"], reply.json()["choices"][0]["text"]
