"""Check that the policy's first prompts fit the context, before the engine starts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from tokenizers import Tokenizer

from common.settings import Settings
from episodes.agent import Environment
from episodes.episode import Message, Policy, Task, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.turns import turns_of
from training.setup.chat_template import SETTING, rendered, with_tools
from training.setup.folder_files import read_json, read_text
from training.setup.model_folder import find_model, read_template
from training.setup.plan import ConfigError

Tasks = Mapping[str, Sequence[Task]]  # by file


class FirstPrompt(Policy):
    """A policy that keeps its first prompt, and stops."""

    messages: Sequence[Message] = ()
    tools: Sequence[ToolSpec] = ()

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        self.messages = list(messages)
        self.tools = list(tools)
        raise PolicyStop("max_turns")


def check_prompts(
    tasks: Tasks, environment: Environment, settings: Settings, config: DictConfig
) -> None:
    """Raise ConfigError if a task's first prompt fills vLLM's context: its episodes would all end
    without a call.
    """
    model = str(config.actor_rollout_ref.model.path)
    longest = int(config.actor_rollout_ref.rollout.max_model_len)
    folder = find_model(model)
    if not (folder / "tokenizer.json").is_file():
        return
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    named = OmegaConf.select(config, SETTING)

    @cache
    def template_for(has_tools: bool) -> str:
        # The copies that a run may serve differ from it in later prompts alone
        template = read_text(Path(named)) if named else read_template(model, has_tools)
        return with_tools(template) if has_tools else template

    async def tokens_of(task: Task) -> int | None:
        """Return the tokens of a task's first prompt, None if its episode cannot begin."""
        policy = FirstPrompt(turns_of(task, settings))
        try:
            await environment.play(task, policy)
        except EpisodeError:
            return None  # the run counts it
        text = rendered(template_for(bool(policy.tools)), policy.messages, policy.tools)
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    for name, part in tasks.items():
        over = asyncio.run(too_long(part, longest, tokens_of))
        if over:
            first, tokens = next(iter(over.items()))
            positions = read_json(folder / "config.json").get("max_position_embeddings")
            raise ConfigError(
                f"{len(over)} of {len(part)} rows of the {name} file give prompts that fill the "
                f"context: {first}, the first, {tokens} tokens of {longest} "
                "(actor_rollout_ref.rollout.max_model_len). Leave these rows out, or raise "
                f"data.max_prompt_length and max_model_len; {model} has {positions} positions"
            )


async def too_long(
    part: Sequence[Task], longest: int, tokens_of: Callable[[Task], Awaitable[int | None]]
) -> dict[str, int]:
    """Return the tokens of prompts that fill the context, by task.

    A prompt is made of a task's own text and of what all of its kind have. A token has a byte at
    least, so that only tasks with much text are begun, beside one of each kind.
    """
    least: dict[tuple[str, str], int] = {}
    over = {}
    for task in part:
        kind = (task.agent, task.task_type)
        if least.get(kind, longest) + len(repr(task).encode()) < longest:
            continue
        tokens = await tokens_of(task)
        if tokens is None:
            continue
        least[kind] = min(tokens, least.get(kind, tokens))
        if tokens >= longest:
            over[task.id] = tokens
    return over
