"""The actions of an episode, named as in MedAgentGym.

An observation is a dict with `type` and `env_message`. A mistake of the policy gives the type
"error". A failure of the machine raises EpisodeError.
"""

import ast
import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from textwrap import dedent, indent
from typing import Any, Literal

from code_agent.debugger import Debugger
from code_agent.lookup import LookupRefused
from code_agent.protocol import Action
from common.toml import table_beside
from episodes.outcomes import EpisodeError
from tools.sandbox import MachineTooSlowError, Run, Sandbox, SandboxError

ACTIONS: dict[str, dict[str, Any]] = table_beside(__file__)
SAID: dict[str, str] = ACTIONS.pop("said")
OK = "ok"
TRACEBACK = "Traceback (most recent call last):\n"
# Frames of programs, of modules and scripts where these may write, and of what a command gives Python
OWN_FRAME = re.compile(r'  File "(<program|/scratch/|/tmp/|/dev/shm/|<stdin>|<string>)')
FENCE = re.compile(r"```\w*")
HERE = "<<insert solution here>>"  # where a context has room for the policy's program

Observation = dict[str, Any]


@dataclass
class EpisodeContext:
    """What actions work on. `look_up` answers request_info, `frame` is `CodeTask.context`."""

    sandbox: Sandbox
    episode: str
    look_up: Callable[[str, str, str], str]
    debugger: Debugger
    frame: str = ""


def why_refused(action: Action, permitted: Collection[str]) -> tuple[str, str] | None:
    """Return (a name in actions.toml, detail) if the action is refused, or None."""
    if action.name not in ACTIONS:
        return "unknown_action", f"{action.name[:60]!r}; there are {', '.join(permitted)}."
    if action.name not in permitted:
        return "not_permitted", f"{action.name}; it permits {', '.join(permitted)}."
    for name in ACTIONS[action.name]["needs"]:
        if not isinstance(action.params.get(name), str):
            seen = type(action.params[name]).__name__ if name in action.params else "nothing"
            return "bad_param", f"{name!r} of {action.name} must be a text, got {seen}."
    return None


async def perform(
    action: Action, context: EpisodeContext, permitted: Collection[str]
) -> Observation:
    """Take an action or refuse it. The game itself handles `submit`."""
    refused = why_refused(action, permitted)
    if refused:
        return refusal(*refused)
    params = action.params
    if action.name == "request_info":
        keyterm = params.get("keyterm")
        asked = (params["data_path"], params["info_type"], "" if keyterm is None else str(keyterm))
        try:
            found = await asyncio.to_thread(context.look_up, *asked)
        except (LookupRefused, OSError, sqlite3.Error, ValueError) as error:
            return {"type": "error", "env_message": str(error), "problem": "lookup"}
        if params["info_type"] == "fhir":
            await run_in(context, f"import json; bundle = json.loads({found!r})")
        return {"type": "requested_info", "env_message": found}
    if action.name == "validate_code":
        return await run_program(program_of(params["code"], context), context)
    if action.name == "terminal":
        return await run_program(params["cmd"], context, "sh")
    said = await context.debugger.debug(params["code"], params["error_msg"])
    return {"type": "debugging_info", "env_message": said}


def refusal(problem: str, detail: str = "") -> Observation:
    return {"type": "error", "env_message": SAID[problem].format(detail=detail), "problem": problem}


async def run_program(
    program: str, context: EpisodeContext, language: Literal["python", "sh"] = "python"
) -> Observation:
    """Return what a program wrote.

    printed: standard output, the only part that counts as an answer. status: SUCCESS or FAILED.
    """
    run = await run_in(context, program, language)
    names = {node.id for node in nodes_of(program) if isinstance(node, ast.Name)}
    has_room = language == "python" and not context.frame and not run.printed.strip()
    if run.status == OK and has_room and "answer" in names:
        # Not an `answer` that only a function or class has
        shown = await run_in(context, "if 'answer' in globals():\n    print(answer)")
        run = replace(shown, seconds=run.seconds + shown.seconds, errors=run.errors + shown.errors)
    said = f"{run.printed}{own_frames(run.errors)}".rstrip()
    printed = run.printed.rstrip() if run.status == OK else said
    if run.status in SAID:
        said = f"{said}\n{SAID[run.status]}".strip()
    status, silent = ("SUCCESS", "nothing_printed") if run.status == OK else ("FAILED", "failed")
    ended = {"status": status, "execution_time": run.seconds, "printed": printed}
    kind = "code_execution" if language == "python" else "cmd_result"
    return {"type": kind, "env_message": said or SAID[silent], **ended}


def own_frames(output: str) -> str:
    """Return an output whose traceback, if any, shows only the frames of the policy's programs."""
    before, begun, traceback = output.partition(TRACEBACK)
    kept = list[str]()
    foreign = False
    for line in traceback.rsplit(TRACEBACK, 1)[-1].splitlines():
        if line.startswith("  File "):
            foreign = not OWN_FRAME.match(line)
        foreign = foreign and line.startswith("  ")
        if not foreign and line.strip(" ^~"):
            kept.append(line)
    return f"{before}{begun}" + "\n".join(kept)


async def run_in(
    context: EpisodeContext, program: str, language: Literal["python", "sh"] = "python"
) -> Run:
    """Run a program in the episode. Raises EpisodeError: the machine failed."""
    # Paths are below /data, unless programs run unprotected
    for path, there in context.sandbox.paths.items():
        program = program.replace(f"/data/{path.name}", there)
    try:
        return await context.sandbox.run(program, context.episode, language)
    except MachineTooSlowError as error:
        raise EpisodeError("machine_too_slow", str(error)) from None
    except SandboxError as error:
        raise EpisodeError("sandbox_failed", str(error)) from None


def program_of(code: str, context: EpisodeContext) -> str:
    """Return a program in the task's frame, if it has one, and without its block."""
    code = code.removeprefix("\ufeff")
    opened, _, block = code.lstrip().partition("\n")
    if block and FENCE.fullmatch(opened.rstrip()):
        before, _, last = block.rstrip().rpartition("\n")
        code = before if last.strip() == "```" else block
    return placed(context.frame, code) if context.frame else code


def placed(context: str, code: str) -> str:
    """Return the context with the code in its gap, indented like the gap."""
    before, _, after = context.partition(HERE)
    margin = before[len(before.rstrip(" \t")) :]
    return f"{before.removesuffix(margin)}{indent(dedent(code), margin)}{after}"


def doing_nothing(code: str) -> str:
    """Return the code with functions that do nothing, or "" if it has no functions to empty."""
    nodes = nodes_of(dedent(code))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        function.body = [ast.Pass()]
    return ast.unparse(nodes[0]) if functions else ""


def nodes_of(code: str) -> list[ast.AST]:
    """Return the nodes of a program, the module first, or [] if it does not parse."""
    try:
        return list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def as_text(answer: Any) -> str:
    """Return a submitted value as a grader reads it."""
    try:
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    except TypeError:  # a set, or a number of numpy, that a caller of `Game` hands in
        return str(answer)
