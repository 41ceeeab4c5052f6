"""How many turns an episode may have. All samples of a task have as many, so that a group compares."""

import re
from argparse import ArgumentTypeError
from random import Random

from common.settings import Settings
from episodes.agent import Agent
from episodes.episode import AgentError, Task


def turns(text: str) -> tuple[int, int]:
    """Return the fewest and the most turns of "6" or "2-10", as a type for argparse."""
    found = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", text)
    if found:
        fewest = int(found[1])
        most = int(found[2] or fewest)
        if 1 <= fewest <= most:
            return fewest, most
    raise ArgumentTypeError(
        f"expected a number of 1 or more, or a range such as 2-10, got {text!r}"
    )


def with_turns(agent: Agent, settings: Settings, given: tuple[int, int] | None = None) -> Settings:
    """Return the settings with a run's turns: the flag's, else MIN_TURNS and MAX_TURNS, else the
    agent's. Raises AgentError: MIN_TURNS is above the most.
    """
    own = settings.max_turns if "max_turns" in settings.model_fields_set else agent.turns
    fewest, most = given or (settings.min_turns or own, own)
    if fewest > most:
        raise AgentError(
            f"MIN_TURNS={fewest} is above the most turns of "
            f"a run, {most}; lower it, or raise MAX_TURNS"
        )
    return settings.of(agent.settings).under({"min_turns": fewest, "max_turns": most})


def turns_of(task: Task, settings: Settings) -> int:
    """Return the most turns of a task: its own, else the run's, drawn by its id from a range."""
    fewest = settings.min_turns or settings.max_turns
    most = settings.max_turns
    drawn = Random(f"{settings.turns_seed}/{task.id}").randint(fewest, most)
    return task.max_turns or drawn
