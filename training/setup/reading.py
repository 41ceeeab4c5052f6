"""How vLLM reads a model: its chat template, whether it thinks, and the parser of its calls."""

from __future__ import annotations

import json
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from training.setup.chat_template import SWITCH, choose_template, lacks_tools, with_tools
from training.setup.model_folder import read_template
from training.setup.plan import ConfigError, EnginePlan
from training.setup.presets import THOUGHT_TOKENS
from training.setup.tool_parser import find_parser

VLLM = "actor_rollout_ref.rollout.engine_kwargs.vllm"
PARSER = f"{VLLM}.tool_call_parser"
SWITCHES = f"{VLLM}.default_chat_template_kwargs"
NO_THOUGHT = json.dumps({SWITCH: False})


def choose_reading(engine: EnginePlan, run_dir: Path, config: DictConfig) -> str | None:
    """Set how vLLM reads in a run, and return the chat template to write, if not the model's.

    Raises ConfigError: the template cannot be used, or no parser reads its tool calls.
    """
    changed = choose_template(engine, run_dir, config)
    template = changed or read_template(engine.model, engine.tools)
    thinks = engine.thinking or engine.keep_thinking
    if SWITCH in template and not thinks and OmegaConf.select(config, SWITCHES) is None:
        OmegaConf.update(config, SWITCHES, NO_THOUGHT, force_add=True)
    if engine.tools and OmegaConf.select(config, PARSER) is None:
        parser = engine.tool_parser or find_parser(engine.model, template)
        OmegaConf.update(config, PARSER, parser, force_add=True)
    return changed


def reading_flags(
    model: str, log: Path, tools: bool, tool_parser: str | None = None, thinking: bool = False
) -> list[str]:
    """Return vLLM's flags for a served model. A template of ours is written beside the log.

    Raises ConfigError: the template cannot be used, or no parser reads its tool calls.
    """
    flags = []
    template = read_template(model, tools)
    if tools and lacks_tools(template):
        template = with_tools(template)
        path = log.with_suffix(".chat_template.jinja")
        path.write_text(template, encoding="utf-8")
        print(f"{model}: its chat template knows no tools; they are described in words ({path})")
        flags += ["--chat-template", str(path)]
    if SWITCH in template and not thinking:
        flags += ["--default-chat-template-kwargs", NO_THOUGHT]
    if tools:
        parser = tool_parser or find_parser(model, template)
        flags += ["--enable-auto-tool-choice", "--tool-call-parser", parser]
    return flags


def thought_tokens(model: str, tools: bool) -> int:
    """Return the tokens of a thought. Raises ConfigError: thinking cannot be turned on and off."""
    if SWITCH not in read_template(model, tools):
        raise ConfigError(
            f"--thinking: the chat template of {model} has no {SWITCH}; a model that always "
            "thinks needs no flag, but a larger MAX_TOKENS"
        )
    return THOUGHT_TOKENS
