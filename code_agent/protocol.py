"""Reads the one JSON action of a policy's reply, in MedAgentGym's protocol, and keeps what came of it.

Words around the object, a fence, line breaks inside texts, a Python dict, and parameters beside the
name are accepted. Reading takes linear time and never raises.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from common.thoughts import after_thought

DECODER = json.JSONDecoder(strict=False)  # a program in a text has line breaks
PARAMS = ("params", "parameters", "arguments", "args")
ESCAPE = re.compile(r'(\\["\\/bfnrtu])|\\')  # JSON's own, or a stray backslash as in "\d"
MOST_OBJECTS = 64  # places where an object may begin
LONGEST_DICT = 20_000  # characters of a Python dict

# Under "submit" an answer is handed in once, under "oracle" a right output ends the episode
ENDINGS = ("submit", "oracle")
LOOP = 3  # so many runs of the same program are a loop


@dataclass(frozen=True)
class Action:
    name: str
    params: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the action as a reply."""
        return json.dumps({"action": self.name, "params": self.params}, ensure_ascii=False)


@dataclass(frozen=True)
class Malformed:
    """A reply without an action. problem: a name under `said` in actions.toml."""

    problem: str
    detail: str = ""


@dataclass(frozen=True)
class Event:
    """A reply and its outcome. action: "" if the reply had none. problem: why it was refused.

    printed: by a run. worth: the value of what was handed in, if anything was.
    """

    action: str
    params: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    status: str = ""
    printed: str = ""
    problem: str = ""
    worth: float | None = None

    @property
    def ran(self) -> bool:
        return self.kind == "code_execution"

    @property
    def raised(self) -> bool:
        return self.status == "FAILED"


def loops(events: Sequence[Event]) -> bool:
    """Return whether the same program was run LOOP times."""
    runs = [event for event in events if event.action == "validate_code"]
    often = Counter(str(event.params.get("code")) for event in runs)
    return max(often.values(), default=0) >= LOOP


def read_reply(text: str) -> Action | Malformed:
    """Return the action of a reply, or Malformed."""
    text = after_thought(text.encode("utf-8", "replace").decode("utf-8"), opened=False) or ""
    if not text:
        return Malformed("empty")
    found = [one for one in _objects(text) if isinstance(one.get("action"), str)]
    if not found:
        return Malformed("no_action")
    if len(found) > 1:
        return Malformed("several_actions")
    [action] = found
    name = action.pop("action").strip().lower()
    given = next((action[key] for key in PARAMS if key in action), None)
    if isinstance(given, str):  # an object written as a text
        given = next(iter(_objects(given)), given)
    if isinstance(given, dict | None):
        beside = {key: value for key, value in action.items() if key not in PARAMS}
        return Action(name, given or beside)
    return Malformed("bad_params", type(given).__name__)


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects of a text.

    If the first is broken and no other is an action: the Python dict in the text, or else what is
    JSON once its stray backslashes are doubled.
    """
    found = _json_objects(text)
    named = [one for one in found.values() if isinstance(one.get("action"), str)]
    if text.find("{") in found or named:
        return [*found.values()]
    mended = ESCAPE.sub(lambda escape: escape[1] or r"\\", text)
    return _python_dict(text) or [*_json_objects(mended).values()]


def _json_objects(text: str) -> dict[int, dict[str, Any]]:
    """Return the outermost JSON objects of a text by where they begin."""
    found = {}
    at = text.find("{")
    for _ in range(MOST_OBJECTS):
        if at < 0:
            break
        try:
            found[at], end = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)
    return found


def _python_dict(text: str) -> list[dict[str, Any]]:
    start = text.find("{")
    end = text.rfind("}") + 1
    if start < 0 or not start < end <= start + LONGEST_DICT:
        return []
    try:
        value = json.loads(json.dumps(ast.literal_eval(text[start:end]), default=str))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return []
    return [value] if isinstance(value, dict) else []
