"""How vLLM reads a model: its chat template, whether it thinks, and the parser of its calls."""

import json
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from training.setup.chat_template import SWITCH, choose_template, with_tools
from training.setup.model_folder import COPY_AGAIN, find_model, read_json, read_template
from training.setup.plan import ConfigError, EnginePlan
from training.setup.presets import THOUGHT_TOKENS
from training.setup.tool_parser import find_parser, reply_end

VLLM = "actor_rollout_ref.rollout.engine_kwargs.vllm"
PARSER = f"{VLLM}.tool_call_parser"
SWITCHES = f"{VLLM}.default_chat_template_kwargs"
NO_THOUGHT = json.dumps({SWITCH: False})


def choose_reading(engine: EnginePlan, run_dir: Path, config: DictConfig) -> str | None:
    """Set how vLLM reads in a run, and return the chat template to write, if not the model's."""
    changed = choose_template(engine, run_dir, config)
    template = changed or read_template(engine.model, engine.tools)
    check_end(engine.model, template)
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
    """Return vLLM's flags for a served model. A template of ours is written beside the log."""
    if thinking:
        thought_tokens(model, tools)  # refuses a model that has no switch
    flags = []
    own = read_template(model, tools)
    template = with_tools(own) if tools else own
    if template != own:
        path = log.with_suffix(".chat_template.jinja")
        path.write_text(template, encoding="utf-8")
        print(f"{model}: its chat template knows no tools; they are described in words ({path})")
        flags += ["--chat-template", str(path)]
    check_end(model, template)
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


def check_end(model: str, template: str) -> None:
    """Raise ConfigError if a reply ends with a special token that does not end the model's text:
    no reply would end by itself. Templates of base models are like that.
    """
    from tokenizers import Tokenizer

    folder = find_model(model)
    end = reply_end(template).strip()
    if not end or not (folder / "tokenizer.json").is_file():
        return
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # of no class of its own
        raise ConfigError(
            f"{folder}/tokenizer.json cannot be read ({error}); {COPY_AGAIN}"
        ) from None
    special = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    first = tokenizer.encode(end, add_special_tokens=False).ids[0]
    ends = end_tokens(folder, tokenizer)
    if first in special and ends and first not in ends:
        names = ", ".join(str(tokenizer.id_to_token(one)) for one in sorted(ends))
        raise ConfigError(
            f"{model}: by its chat template a reply ends with {tokenizer.id_to_token(first)}, but "
            f"what ends its text is {names}: no reply would end before its limit. Add {first} to "
            f"eos_token_id in {folder}/generation_config.json, or take the chat model"
        )


def end_tokens(folder: Path, tokenizer: Any) -> set[int]:
    """Return the ids of the tokens that end a model's text, by any of its files."""
    found: set[int | str | None] = set()
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            settings = read_json(folder / name, "")
            named = settings.get("eos_token_id")
            found.update(named if isinstance(named, list) else [named])
            token = settings.get("eos_token")
            text = token.get("content") if isinstance(token, dict) else token
            if text:
                found.add(tokenizer.token_to_id(text))
    return {int(one) for one in found if one is not None}
