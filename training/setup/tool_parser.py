"""Find vLLM's parser for the tool calls that a model's own chat template writes.

The parsers read back a rendered call in a process of its own: importing vLLM takes ten seconds. The
form of Hermes and Qwen is recognised here, at once.
"""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Prefix

from training.setup.chat_template import ARGUMENTS, ASKED, CALL, CALLED, TOOL, TOOL_NAME, render
from training.setup.device import environment
from training.setup.model_folder import find_model, read_json
from training.setup.plan import ConfigError

HERMES = "hermes"
HERMES_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
SAID = "¤ The first one."  # begins as no call does
SECONDS = 300


def find_parser(model: str, template: str) -> str:
    """Return the parser for a model with this template. Raises ConfigError: none reads it."""
    reply = rendered_call(template)
    for call in HERMES_CALL.findall(reply):
        with suppress(ValueError):
            if json.loads(call) == CALLED:
                return HERMES
    command = [sys.executable, "-m", "training.setup.tool_parser", str(find_model(model))]
    why = ""
    try:
        asked = subprocess.run(
            command,
            input=reply,
            env={**os.environ, **environment("cpu"), "VLLM_LOGGING_LEVEL": "CRITICAL"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if asked.returncode:
            why = (asked.stderr.strip().splitlines() or ["no word"])[-1]
    except subprocess.TimeoutExpired:
        why = f"no answer in {SECONDS} s"
    if why:
        raise ConfigError(
            f"{model}: vLLM could not be asked which parser reads its tool calls ({why}); "
            "name one with --tool-parser"
        )
    names = asked.stdout.splitlines()[-1].split()  # vLLM logs before it
    if not names:
        raise ConfigError(
            f"{model}: none of vLLM's parsers reads a tool call as its chat template writes it "
            f"({reply[:80]!r}); name one with --tool-parser, or take a model with tool use"
        )
    return names[0]


def rendered_call(template: str) -> str:
    """Return a reply that calls a tool, as the template writes it."""
    calls = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    whole = render(template, [ASKED, calls], tools=True, opened=False)
    before = Prefix.similarity(whole, _answered(template))
    return whole[before:].removesuffix(reply_end(template))


def reply_end(template: str) -> str:
    """Return what the template writes behind a reply in words."""
    return _answered(template).rpartition(SAID)[2]


@cache
def _answered(template: str) -> str:
    said = {"role": "assistant", "content": SAID}
    return render(template, [ASKED, said], tools=True, opened=False)


def readers(folder: Path, reply: str) -> list[str]:
    """Return vLLM's parsers that read this reply, the one named most like the model's type first."""
    from transformers import AutoTokenizer
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers import ToolParserManager

    tokenizer = AutoTokenizer.from_pretrained(folder)
    request = ChatCompletionRequest(model="model", messages=[ASKED], tools=[TOOL])
    kind = str(read_json(folder / "config.json", "is this a model folder?").get("model_type"))
    found = []
    for name in sorted({*ToolParserManager.tool_parsers, *ToolParserManager.lazy_parsers}):
        try:
            parser: Any = ToolParserManager.get_tool_parser(name)
            read = parser(tokenizer, request.tools).extract_tool_calls(reply, request)
            [call] = read.tool_calls
            arguments = json.loads(call.function.arguments)
        except Exception:  # a parser of another family wants tokens or packages that are not there
            continue
        if call.function.name == TOOL_NAME and arguments == ARGUMENTS:
            found.append(name)
    return sorted(found, key=lambda name: -Prefix.similarity(name, kind))


if __name__ == "__main__":
    print(*readers(Path(sys.argv[1]), sys.stdin.read()))
