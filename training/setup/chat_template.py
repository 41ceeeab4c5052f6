"""Make a chat template keep what the policy thought, and know tools.

A template that drops earlier thoughts makes each turn a sequence of its own. `--keep-thinking`
serves a copy that keeps them. Without thinking, Qwen3's writes an empty thought before the last
reply alone. A copy writes it before all. One without tools gets `tools_in_words.jinja` in front.
"""

import json
import re
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from training.setup.model_folder import read_template, read_text
from training.setup.plan import ConfigError, EnginePlan

TEMPLATE = "chat_template.jinja"
SETTING = "actor_rollout_ref.rollout.engine_kwargs.vllm.chat_template"
TOOLS_IN_WORDS = Path(__file__).with_name("tools_in_words.jinja")
# The variable by which the templates of Qwen3, GLM and others turn thinking off
SWITCH = "enable_thinking"
LOOKS_FOR_THOUGHT = re.compile(r"""(['"])</think>\1\s+in\s+[\w.]+""")

# Every reply begins with `due` (header, empty thought), not only the one that is due
EMPTY_THOUGHTS = (
    "{{% set rendered %}}{template}{{% endset %}}{{% if {switch} is defined and not {switch} %}}"
    "{{{{ rendered | replace({due}, {header}) | replace({header}, {due}) }}}}"
    "{{% else %}}{{{{ rendered }}}}{{% endif %}}"
)
THOUGHT = "<think>\nFirst the one.\n</think>\n\n"
# A call that templates are tried with
TOOL_NAME = "look"
ARGUMENTS = {"word": "the first one"}
TOOL = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": "Look a word up.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "description": "a word"}},
            "required": ["word"],
        },
    },
}
CALLED = {"name": TOOL_NAME, "arguments": ARGUMENTS}
CALL = {"id": "call00001", "type": "function", "function": CALLED}
ASKED = {"role": "user", "content": "Which?"}


def choose_template(engine: EnginePlan, run_dir: Path, config: DictConfig) -> str | None:
    """Return the template to serve in place of the model's, named in the config, or None.

    Raises ConfigError: it cannot be read, or not be made to keep thoughts.
    """
    named = OmegaConf.select(config, SETTING)
    if named is None:
        found = read_template(engine.model, engine.tools)
    else:
        found = read_text(Path(named), f"expected a file in {SETTING}")
    template = with_tools(found) if engine.tools else found
    if template != found:
        print("chat template: it knows no tools, so they are described in words", flush=True)
    thinks = engine.thinking or SWITCH not in found
    if engine.keep_thinking and named is None:
        template = keep_thinking(template, engine.tools)
    elif engine.max_turns > 1 and thinks:
        if not continues(template, engine.tools):
            print(
                "chat template: it drops <think> blocks of earlier turns, which gives up to "
                f"{engine.max_turns} times the tokens; --keep-thinking keeps them",
                flush=True,
            )
    elif engine.max_turns > 1 and named is None:
        before = template
        template = with_empty_thoughts(template, engine.tools)
        if template != before:
            print("chat template: empty thoughts are written before all replies", flush=True)
    if template == found:
        return None
    OmegaConf.update(config, SETTING, str(run_dir / TEMPLATE), force_add=True)
    return template


def with_tools(template: str) -> str:
    """Return a template that shows tools: itself, or itself behind `tools_in_words.jinja`.

    Raises ConfigError: it cannot render a conversation with a tool.
    """
    if "tools" in template:
        return template
    words = TOOLS_IN_WORDS.read_text(encoding="utf-8") + template
    shown = render(words, _conversation("", tools=True), tools=True)
    if "<tools>" not in shown or "<tool_response>" not in shown:
        raise ConfigError(
            "this model's chat template leaves out system messages, so tools cannot be "
            f"described in words; use a model with tool use, or name a template: +{SETTING}=FILE"
        )
    return words


def continues(template: str, tools: bool, thought: str = THOUGHT, **switches: bool) -> bool:
    """Return whether a second prompt begins with the first one and the thoughtful reply to it."""
    # With tools the reply is the thought and a call, otherwise the thought and an answer
    first = render(template, [ASKED], tools, **switches)
    reply = thought if tools else f"{thought}Then the other."
    if first.rstrip().endswith("<think>"):  # the template opens the block, so that replies do not
        reply = reply.removeprefix("<think>\n")
    second = render(template, _conversation(reply, tools), tools, **switches)
    return second.startswith(first + reply)


def keep_thinking(template: str, tools: bool) -> str:
    """Return the template, changed so that it finds no thoughts to take out.

    Raises ConfigError: that does not help, or changes conversations without thoughts.
    """
    if continues(template, tools):
        return template
    changed = LOOKS_FOR_THOUGHT.sub("false", template)
    plain = _conversation("Then the other.", tools)
    same = render(changed, plain, tools) == render(template, plain, tools)
    if not same or not continues(changed, tools):
        raise ConfigError(
            "--keep-thinking: this model's chat template cannot be changed "
            "safely. Write one that renders earlier replies as they were "
            f"generated, and name it: +{SETTING}=FILE (without --keep-thinking)"
        )
    return changed


def with_empty_thoughts(template: str, tools: bool) -> str:
    """Return the template, changed to write the empty thought before earlier replies, too.

    It stays as it is where a prompt continues the one before already, or cannot be made to.
    """
    off = {SWITCH: False}
    if continues(template, tools, "", **off):
        return template
    # Behind the question a header and the empty thought begin the reply that is due
    question = render(template, [ASKED], tools, opened=False)
    due = render(template, [ASKED], tools, **off).removeprefix(question)
    header = due.partition("<think>")[0]
    earlier = render(template, _conversation(THOUGHT, False), tools=False, opened=False)
    if header == due or header not in earlier:
        return template
    changed = EMPTY_THOUGHTS.format(
        template=template, due=json.dumps(due), header=json.dumps(header), switch=SWITCH
    )
    plain = _conversation("Then the other.", tools)
    same = render(changed, plain, tools) == render(template, plain, tools)
    return changed if same and continues(changed, tools, "", **off) else template


def _conversation(reply: str, tools: bool) -> list[dict[str, Any]]:
    """Return a question, a reply and the next message. Tool calls have the reply as their text."""
    said = {"role": "assistant", "content": reply}
    if tools:
        result = {"role": "tool", "tool_call_id": CALL["id"], "name": TOOL_NAME, "content": "[]"}
        return [ASKED, {**said, "tool_calls": [CALL]}, result]
    return [ASKED, said, {"role": "user", "content": "And now?"}]


def render(
    template: str,
    messages: list[dict[str, Any]],
    tools: bool,
    opened: bool = True,
    **switches: bool,
) -> str:
    """Return the text that transformers and vLLM render, without special tokens.

    tools: TOOL can be called. opened: the next reply is begun. Raises ConfigError: it cannot.
    """
    from jinja2 import TemplateError
    from transformers.utils.chat_template_utils import render_jinja_template

    tokens = dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), "")
    try:
        [text], _ = render_jinja_template(
            [messages],
            tools=[TOOL] if tools else None,
            chat_template=template,
            add_generation_prompt=opened,
            **tokens,
            **switches,
        )
    except (TemplateError, TypeError) as error:
        raise ConfigError(
            f"the chat template cannot render a conversation: {error}. "
            f"Use another model, or name a file with +{SETTING}=FILE"
        ) from None
    return str(text)
