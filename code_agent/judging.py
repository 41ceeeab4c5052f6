"""What an episode hands in, and programs that run apart from the policy's."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from code_agent.actions import OK, EpisodeContext, run_in

_fresh = itertools.count()


@dataclass(frozen=True)
class Handed:
    """The answer as text, and the last program that ran without error."""

    answer: str
    program: str = ""


async def output_of(program: str, context: EpisodeContext) -> str:
    """Return what a program prints in an interpreter of its own, or "" if it fails."""
    apart = f"/check {next(_fresh)}"
    run = await run_in(context, program, apart=apart)
    await context.sandbox.end(f"{context.episode}{apart}")
    return run.printed.strip() if run.status == OK else ""
