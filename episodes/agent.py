"""What an agent is: the contract between a task's own code and everything that trains, evaluates
and shows it.

    agent = registry.get("sql")                          # Agent: light, picklable, one a folder `*_agent/`
    environment = agent.open(settings, options)          # Environment: database, partner, judge; one a process
    scored = await play(environment, task, environment.play(task, policy), policy, timeout)  # episodes/play_and_score.py

An agent must bring `name`, `splits`, `sizes`, `rows`, `task` and `open`, and its environment `play`
and `score`. Everything else has a default, and is grouped by its callers: `Flags` (commands),
`Showing` (evaluation, demo, report), `Teaching` (cold starts), `KnownEpisodes` (the check of
the judge). docs/agents.md explains each. Importing this, or an agent, imports nothing
heavy.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from common.settings import Settings
from episodes.episode import (
    AgentError,
    Conversation,
    Episode,
    Policy,
    Task,
    ToolSpec,
)
from episodes.kept import kept_episodes
from episodes.shown import Shown, transcript
from scoring.rubric import Reward

Row = dict[str, Any]
Record = dict[str, Any]
Options = Mapping[str, Any]
Answer = Callable[[str], Awaitable[str]]  # what the policy says to a person -> what the person says

SERVED_NAME = "policy"  # of every model that is served here, a partner's too
MOST_ACCEPTED = 0.05  # of known-bad episodes that may fool the reward: a run with more stops
ACCEPTED_FROM = 0.5  # of the score: a known-bad episode that earns as much has fooled the reward


@dataclass(frozen=True)
class Sizes:
    """Tokens of an agent's episodes: the first prompt, all that follows it, and one reply of the
    policy.
    """

    prompt: int
    response: int
    reply: int


@dataclass(frozen=True)
class Column:
    """A column of the evaluation's table: a key of the scores; shares are shown in points, with
    their interval.
    """

    heading: str
    metric: str
    interval: bool = False


@dataclass(frozen=True)
class Service:
    """A model to serve for the length of a run, as SERVED_NAME; its address becomes the option
    `option`.

    gpus: its own, as CUDA_VISIBLE_DEVICES names them; without them it shares the policy's.
    """

    option: str
    model: str
    gpus: str | None = None


class KnownEpisodes:
    """Episodes of a task whose worth is known without a model; the default knows none.

    accepted_from: the score from which a dishonest kind has fooled the reward, for kinds where it
    is not ACCEPTED_FROM because they are partly right.
    """

    accepted_from: Mapping[str, float] = MappingProxyType({})

    async def gold(self, task: Task) -> Episode | None:
        """Return a perfect episode; None where the task has no gold."""
        return None

    async def baseline(self, name: str, task: Task, commonest: str) -> Episode:
        """Return the episode of one of `Showing.baselines`: "at_once" answers without a tool or a
        question, "commonest" with the answer given, "checklist" does the same for every task.
        """
        raise NotImplementedError(name)

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        """Return episodes that deserve a high score, by kind, the surest first; none where nothing
        is known to be right.
        """
        gold = await self.gold(task)
        return {"gold": gold} if gold else {}

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        """Return episodes that deserve a low score, by kind; none where there is
        nothing to fool.
        """
        return {}


class Environment(ABC):
    """Plays and scores an agent's episodes, many at once. A process has one; it owns what episodes
    need and releases it in `close`.

    highest: the most that an episode can earn. paid: whether scoring asks a model that costs money
    or time.
    """

    highest: float = 1.0
    paid: bool = False
    known: KnownEpisodes = KnownEpisodes()
    converses: bool = False  # whether `asked` lets the person speak again

    @abstractmethod
    async def play(self, task: Task, policy: Policy) -> Episode:
        """Play one episode.

        Raises EpisodeError where the machine failed; what the policy does never raises.
        """

    @abstractmethod
    async def score(self, task: Task, episode: Episode) -> Reward:
        """Return what it earns.

        The same episode earns the same; a failed judge or partner leaves it unscored, named.
        """

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        """Play an episode about a person's own question or case, which earns nothing; the person
        speaks for the partner.

        Raises AgentError: the agent takes none; EpisodeError, and what `answer` raises.
        """
        raise AgentError("this agent takes no question of one's own; name one of its cases")

    def facts(self, task: Task, episode: Episode) -> Mapping[str, float | None]:
        """Return numbers of one episode beyond its reward, whose mean over episodes says something;
        None: not applicable.
        """
        return {}

    def record(self, task: Task, episode: Episode) -> Record:
        """Return what `episodes.jsonl` keeps of an episode besides what it keeps for every agent,
        as JSON values.
        """
        return {}

    def description(self) -> dict[str, Any]:
        """Return what scores depend on besides the policy (database, judge, partner), as JSON
        values without secrets.
        """
        return {}

    async def check(self) -> None:  # noqa: B027 (nothing to ask)
        """Ask what episodes need for a sign of life, before a model is loaded.

        Raises Failure, such as ServiceError.
        """

    def close(self) -> None:  # noqa: B027 (nothing held)
        """Give back what is held."""


class Flags:
    """An agent's own flags, and what they choose.

    unreachable: settings or options that lead its judge or partner nowhere, for tests.
    """

    unreachable: Mapping[str, str] = MappingProxyType({})

    def add(self, parser: ArgumentParser) -> None:
        """Add the agent's own flags to a command that plays episodes."""

    def complete(self, arguments: Namespace) -> None:
        """Complete the arguments of a command that evaluates a file, `arguments.data`: where a flag
        says how rows are made from a published file, `data` becomes the file that was made.
        """

    def services(self, settings: Settings, options: Options) -> Sequence[Service]:
        """Return the models to serve while episodes are played."""
        return ()

    def check(self, tasks: Sequence[Task], options: Options) -> list[str]:
        """Look at what is to be played with these flags; return notes for the screen.

        Raises AgentError: the partner that the flags choose cannot play these tasks.
        """
        return []


class Showing:
    """How evaluation, demo and report show an agent, and how a person plays it.

    headline: the number of one episode, in [0, 1], that a demo reports: "score" or one of the
    environment's facts. columns: the agent's own ones of the evaluation's table. baselines: names
    that `KnownEpisodes.baseline` knows. demo: verl's keys for its demo, where they differ from
    those of --ci.
    """

    headline: str = "score"
    columns: Sequence[Column] = ()
    baselines: Sequence[str] = ()
    demo: Sequence[str] = ()

    def summarise(self, records: Sequence[Record]) -> Mapping[str, Any]:
        """Return ratios over episodes that one episode's facts cannot give; `records` are lines
        of episodes.jsonl.
        """
        return {}

    def failure(self, record: Record) -> str:
        """Return the kind of failure of a scored episode, "right" for none."""
        return "right" if record["score"] == 1 else "wrong"

    def shown(self, record: Record) -> Sequence[Shown]:
        """Return what happened in an episode, as a page shows it."""
        return transcript(record)

    def typed(self, text: str) -> str:
        """Return what a person typed in the form of a reply.

        Raises UsageError: it is not a reply, which costs the person no turn.
        """
        return text


@dataclass(frozen=True)
class Lessons:
    """What a tiny model learns from nothing (training/cold_start.py)."""

    right: list[Conversation]
    flawed: list[Conversation]  # imperfect on purpose, learned after the right ones
    characters: str  # what the tokenizer must know besides the conversations' text
    facts: dict[str, Any]  # numbers for the model's card
    # The tokenizer keeps spaces apart from words, for names that are copied from prose into quotes
    apart: bool = False
    vocabulary: int = 2048  # entries of the tokenizer


class Teaching:
    """Supervised data of an agent: what a model is warmed up with, or made from."""

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        """Return conversations for a role ("policy"; others by agent).

        Raises AgentError: the agent has none for it.
        """
        raise AgentError(f"this agent has no demonstrations for the role {role!r}")

    def dialogues(self, path: Path, agent: str, settings: Settings) -> Iterable[Conversation]:
        """Return conversations from a file: episodes of `agent` that were kept, or what else it can
        frame as episodes are.

        Raises AgentError: not usable, or none.
        """
        return kept_episodes(path, agent)

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        """Return what the bundled model is made from.

        Raises AgentError: the agent brings no recipe.
        """
        raise AgentError(
            "this agent brings no recipe for a tiny model; warm one up with --base MODEL"
        )

    def reading(self, prompts: Path) -> Teaching:
        """Return the same with other words for the policy.

        Raises AgentError: it has no prompts that can be replaced.
        """
        raise AgentError("this agent has no prompts that a file could replace")


class Agent(ABC):
    """One kind of task. Light and picklable: an instance travels to the processes that play its
    episodes.

    name: as commands know it. splits: the data files by "train", "val", "test". tools: what the
    policy may call; without any its chat template need not know tools. turns: calls of the policy
    in one episode, unless MAX_TURNS or --max-turns is set. settings: with the agent's own, from
    `settings.py` in its folder.
    """

    name: str
    splits: Mapping[str, Path]
    prompt_version: str = "1"
    tools: Sequence[ToolSpec] = ()
    turns: int = 3
    settings: type[Settings] = Settings
    flags: Flags = Flags()
    showing: Showing = Showing()
    teaching: Teaching = Teaching()

    @property
    def folder(self) -> Path:
        """The folder of the agent's own module, wherever that lies."""
        return Path(inspect.getfile(type(self))).resolve().parent

    @property
    def model(self) -> str:
        """The bundled cold start."""
        return str(self.folder / "tiny_model")

    @abstractmethod
    def sizes(self, device: str) -> Sizes:
        """Return how long its episodes get, with the bundled model ("cpu") and with a real one
        ("cuda").
        """

    @abstractmethod
    def rows(self, path: Path | str) -> list[Row]:
        """Return the rows of a data file; every row is JSON values.

        Raises UsageError, such as AgentError, or OSError: one line.
        """

    @abstractmethod
    def task(self, row: Row, settings: Settings) -> Task:
        """Return the task of a row that was checked.

        A budget may depend on settings, by task, never by sample. Raises AgentError.
        """

    @abstractmethod
    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        """Return what plays and scores; `options` are the agent's own flags and the addresses of
        its services.

        One opened before anything is served, without these addresses, is asked for its
        `description` alone.
        """

    def check(
        self, rows: Mapping[str, Sequence[Row]], settings: Settings, plays: bool
    ) -> list[str]:
        """Look at the rows of a run, and complete them, before anything heavy starts; return notes
        for the screen.

        Without `plays` this process only trains: what episodes need (a database, a partner) may be
        elsewhere. Raises AgentError.
        """
        return []
