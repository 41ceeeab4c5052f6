"""Check that the policy's first prompts fit the context, before the engine starts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from omegaconf import DictConfig
from tokenizers import Tokenizer

from common.command import Failure
from common.settings import Settings
from episodes.agent import Environment
from episodes.episode import Message, Policy, Task, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.turns import turns_of
from training.setup.chat_template import rendered, with_tools
from training.setup.folder_files import read_json
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

    One task of each agent is begun. The others differ from it by their questions.
    """
    model = str(config.actor_rollout_ref.model.path)
    longest = int(config.actor_rollout_ref.rollout.max_model_len)
    folder = find_model(model)
    if not (folder / "tokenizer.json").is_file():
        return
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    beside: dict[str, int] = {}  # tokens of a prompt beside the question's, by agent
    for name, part in tasks.items():
        over = {}
        for task in part:
            if task.agent not in beside:
                policy = FirstPrompt(turns_of(task, settings))
                try:
                    asyncio.run(environment.play(task, policy))
                except EpisodeError as error:
                    raise Failure(f"the episode of {task.id} cannot begin: {error}") from None
                template = read_template(model, bool(policy.tools))
                if policy.tools:
                    template = with_tools(template)
                text = rendered(template, policy.messages, policy.tools)
                whole = tokens_of(text, tokenizer)
                beside[task.agent] = whole - tokens_of(task.question, tokenizer)
            # A token has a byte at least, so that short questions need not be counted
            if beside[task.agent] + len(task.question.encode()) >= longest:
                tokens = beside[task.agent] + tokens_of(task.question, tokenizer)
                if tokens >= longest:
                    over[task.id] = tokens
        if over:
            first, tokens = next(iter(over.items()))
            positions = read_json(folder / "config.json").get("max_position_embeddings")
            raise ConfigError(
                f"{len(over)} of {len(part)} rows of the {name} file give prompts that fill the "
                f"context: {first}, the first, {tokens} tokens of {longest} "
                "(actor_rollout_ref.rollout.max_model_len). Leave these rows out, or raise "
                f"data.max_prompt_length and max_model_len; {model} has {positions} positions"
            )


def tokens_of(text: str, tokenizer: Tokenizer) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)
