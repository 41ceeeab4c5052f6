"""What an agent is: the contract between a task's own code and everything that trains and shows it.

    agent = registry.get("sql")                          # Agent: light, picklable, one a folder `*_agent/`
    environment = agent.open(settings, options)          # Environment: database, partner, judge; one a process
    scored = await play(environment, task, environment.play(task, policy), policy, timeout)  # episodes/play_and_score.py

docs/agents.md says what an agent must bring. Importing this, or an agent, imports nothing heavy.
"""

import inspect
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from common.settings import Settings
from episodes.episode import AgentError, Conversation, Episode, Policy, Task, ToolSpec
from episodes.kept import kept_episodes
from episodes.shown import Shown, transcript
from scoring.rubric import Reward

Row = dict[str, Any]
Record = dict[str, Any]
Options = Mapping[str, Any]
Answer = Callable[[str], Awaitable[str]]  # what the policy says to a person -> what the person says

SERVED_NAME = "policy"  # of every model that is served here, a partner's too
MOST_ACCEPTED = 0.05  # of known-bad episodes that may fool the reward: a run with more stops
PARTLY_RIGHT = "right, "  # begins the name of a kind of bad episodes that deserves a part


@dataclass(frozen=True)
class Sizes:
    """Tokens of an agent's episodes: the first prompt, all that follows it, and one reply."""

    prompt: int
    response: int
    reply: int


@dataclass(frozen=True)
class Column:
    """A column of the evaluation's table. Shares are shown in points, with their interval."""

    heading: str
    metric: str
    interval: bool = False


SCORE = Column("score", "score", interval=True)  # every table has it


@dataclass(frozen=True)
class Service:
    """A model to serve beside the policy, as SERVED_NAME. Its address becomes the option `option`."""

    option: str
    model: str


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


class Environment(ABC):
    """Plays and scores an agent's episodes, many at once. A process has one.

    highest: the most that an episode can earn. converses: whether `asked` lets the person speak
    again. paid: whether `score` asks a model that costs money or time.
    """

    highest: float = 1.0
    converses: bool = False
    paid: bool = False

    @abstractmethod
    async def play(self, task: Task, policy: Policy) -> Episode:
        """Play an episode. Raises EpisodeError for the machine's faults, never for the policy's."""

    @abstractmethod
    async def score(self, task: Task, episode: Episode) -> Reward:
        """Return what it earns, always the same. A failed judge or partner leaves it unscored."""

    # What is kept

    def record(self, task: Task, episode: Episode) -> Record:
        """Return what `episodes.jsonl` keeps besides the common part, as JSON values.

        `facts` in it are numbers whose mean says something, or None where one does not apply.
        """
        return {}

    def description(self) -> dict[str, Any]:
        """Return what scores depend on besides the policy, as JSON values without secrets."""
        return {}

    # Episodes whose worth is known without a model

    async def gold(self, task: Task) -> Episode | None:
        """Return a perfect episode, None without a gold."""
        return None

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        """Return episodes that deserve a high score, by kind, the surest first."""
        gold = await self.gold(task)
        return {"gold": gold} if gold else {}

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        """Return episodes that deserve a low score, by kind (see PARTLY_RIGHT)."""
        return {}

    def baselines(self, task: Task, commonest: str) -> Mapping[str, Episode]:
        """Return episodes of simple policies by name. `commonest`: the answer of most tasks."""
        return {}

    # Services

    def names(self) -> Mapping[str, str]:
        """Return what columns of a tool's results are called for people, by their names."""
        return {}

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        """Play an unscored episode about a person's own case, with the person as the partner.

        Raises AgentError: it takes no questions. Raises EpisodeError, and what `answer` raises.
        """
        raise AgentError("this agent takes no question of one's own; name one of its cases")

    async def check(self) -> None:  # noqa: B027 (nothing to ask)
        """Ask services for a sign of life before a model is loaded. Raises Failure: ServiceError."""

    def close(self) -> None:  # noqa: B027 (nothing held)
        """Give back what is held."""


class Agent(ABC):
    """One kind of task. It is light, and pickled for the processes that play.

    name: as commands know it. splits: the data files by "train", "val", "test". tools: what the
    policy may call. turns: calls of the policy in an episode, by default. settings: with the
    agent's own, from `settings.py` in its folder. columns: of the evaluation's table, of which
    demos and comparisons report the first, SCORE or a fact in [0, 1]. demo: verl's keys of a demo
    that differ from --ci.
    """

    name: str
    splits: Mapping[str, Path]
    tools: Sequence[ToolSpec] = ()
    turns: int = 3
    settings: type[Settings] = Settings
    columns: Sequence[Column] = (SCORE,)
    demo: Sequence[str] = ()

    @abstractmethod
    def sizes(self, device: str) -> Sizes:
        """Return how long its episodes get with the bundled model ("cpu") or a real one ("cuda")."""

    @abstractmethod
    def rows(self, path: Path) -> list[Row]:
        """Return a file's rows of JSON values. Raises UsageError (as AgentError is) or OSError."""

    @abstractmethod
    def task(self, row: Row, settings: Settings) -> Task:
        """Return the task of a checked row. Raises AgentError."""

    @abstractmethod
    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        """Return what plays and scores. `options`: own flags and addresses of services. Without
        these addresses it is only asked for its `description` and `baselines`.
        """

    # Before anything heavy starts

    def add_flags(self, parser: ArgumentParser) -> None:  # noqa: B027 (it has none)
        """Add the agent's own flags to a command that plays episodes."""

    def complete(self, arguments: Namespace) -> None:  # noqa: B027 (they are complete)
        """Turn `data`, `train_file` and `val_file` into what the agent's own flags make of them."""

    def check(
        self,
        rows: Mapping[str, Sequence[Row]],
        settings: Settings,
        options: Options,
        plays: bool = True,
    ) -> list[str]:
        """Check and complete a command's rows. Return notes for the screen.

        Without `plays` this process only trains, and a database may be elsewhere. Raises
        AgentError: the rows cannot be trained on, or the partner cannot play them.
        """
        return []

    def services(self, settings: Settings, options: Options) -> Sequence[Service]:
        """Return the models to serve while episodes are played."""
        return ()

    # How an episode is shown, from its line of episodes.jsonl

    def failure(self, record: Record) -> str:
        """Return the kind of failure of a scored episode, "right" for none."""
        return "right" if record["score"] == 1 else "wrong"

    def shown(self, record: Record) -> Sequence[Shown]:
        """Return what happened in an episode, as a page shows it."""
        return transcript(record)

    # What models learn from

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        """Return conversations for a role: "policy", or one of the agent's own. Raises AgentError."""
        raise AgentError(f"this agent has no demonstrations for the role {role!r}")

    def dialogues(self, path: Path, settings: Settings) -> Iterable[Conversation]:
        """Return conversations from a file, such as kept episodes. Raises AgentError: none usable."""
        return kept_episodes(path, self.name)

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        """Return what the bundled model is made from. Raises AgentError: no recipe."""
        raise AgentError(
            "this agent brings no recipe for a tiny model; warm one up with --base MODEL"
        )


def accepted_from(kind: str) -> float:
    """Return the score from which a known-bad episode of this kind has fooled the reward."""
    return 0.9 if kind.startswith(PARTLY_RIGHT) else 0.5


def folder_of(agent: Agent) -> Path:
    """Return the folder of an agent's own module, wherever that lies."""
    own = sys.modules.get(f"{agent.name}_agent.agent")  # its class may stand elsewhere
    return Path(inspect.getfile(own or type(agent))).resolve().parent


def bundled_model(agent: Agent) -> str:
    """Return the folder of the agent's cold start."""
    return str(folder_of(agent) / "tiny_model")
