"""An agent made of several, so that one policy is trained to be all of them.

Each row names its agent and holds that agent's own row. Agents keep their settings, and have none
of their own flags here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from random import Random
from typing import Any

from pydantic import create_model

from common.settings import Settings
from episodes.agent import Agent, Environment, Lessons, Options, Record, Row, Sizes
from episodes.episode import AgentError, Episode, Policy, Task
from episodes.row_files import read_rows
from episodes.shown import Shown
from episodes.turns import turns_of
from scoring.rubric import Reward

JOINED = "+"  # between the names of agents that one policy learns to be
# Columns that no row of a user's file has
WHOSE = "__agent__"
WEIGHT = "__weight__"


class JointAgent(Agent):
    """The agents of `members`: steps draw tasks by weight. Raises AgentError: fewer than two."""

    def __init__(self, members: Mapping[str, Agent], weights: Mapping[str, float]) -> None:
        if len(members) < 2:
            raise AgentError(
                f"--agents {','.join(members)}: expected two agents or more, "
                "such as NAME,NAME:2; train_NAME_agent.py trains one"
            )
        agents = members.values()
        self.members = dict(members)
        self.weights = dict(weights)
        self.name = JOINED.join(sorted(members))
        self.splits = {}
        for split in ("train", "val"):
            files = [f"{name}={member.splits[split]}" for name, member in members.items()]
            self.splits[split] = Path(",".join(files))
        self.tools = list(chain.from_iterable(one.tools for one in agents))
        self.turns = max(one.turns for one in agents)
        kinds = {one.settings for one in agents}
        bases = sorted(kinds, key=lambda kind: len(kind.__mro__), reverse=True)
        self.settings = create_model("JointSettings", __base__=tuple(bases))

    def __reduce__(self) -> tuple[Any, ...]:
        return JointAgent, (self.members, self.weights)  # the class of its settings cannot travel

    def sizes(self, device: str) -> Sizes:
        sizes = [member.sizes(device) for member in self.members.values()]
        return Sizes(
            prompt=max(one.prompt for one in sizes),
            response=max(one.response for one in sizes),
            reply=max(one.reply for one in sizes),
        )

    def rows(self, path: Path) -> list[Row]:
        """Return the rows of NAME=FILE,NAME=FILE, agents taking turns, or those that a run wrote."""
        if "=" not in str(path) and path.suffix == ".jsonl":
            return self._written(path)
        parts: list[list[Row]] = []
        for name, file in self._files(str(path)).items():
            own: list[Row] = []
            for at, row in enumerate(self.members[name].rows(file)):
                own.append({"id": f"{name}/{at}", WHOSE: name, "task_type": name, "row": row})
            parts.append(own)
        turns = chain.from_iterable(zip_longest(*parts))
        return [row for row in turns if row is not None]

    def _written(self, path: Path) -> list[Row]:
        rows = read_rows(path, self.name)
        for row in rows:
            if row.get(WHOSE) not in self.members or "row" not in row:
                raise AgentError(
                    f"{path} has rows of none of {', '.join(self.members)}; "
                    f"expected what such a run wrote, or {self._form}"
                )
        return rows

    def _files(self, text: str) -> dict[str, Path]:
        files: dict[str, Path] = {}
        for part in text.split(","):
            name, equals, file = part.partition("=")
            if not equals or name not in self.members or name in files:
                raise AgentError(f"{part!r}: expected a file for each agent, such as {self._form}")
            files[name] = Path(file)
        for name in self.members:
            if name not in files:
                raise AgentError(f"no file is given for {name}; add {name}=FILE")
        return files

    @property
    def _form(self) -> str:
        return ",".join(f"{name}=FILE" for name in self.members)

    def task(self, row: Row, settings: Settings) -> Task:
        member = self.members[row[WHOSE]]
        own = own_settings(member, settings)
        task = member.task(row["row"], own)
        return replace(task, agent=member.name, max_turns=turns_of(task, own))

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        environments: dict[str, Environment] = {}
        for name, member in self.members.items():
            environments[name] = member.open(own_settings(member, settings), {}, evaluating)
        return JointEnvironment(environments, self.weights)

    def check(
        self,
        rows: Mapping[str, Sequence[Row]],
        settings: Settings,
        options: Options,
        plays: bool = True,
    ) -> list[str]:
        notes = []
        for name, member in self.members.items():
            own_rows = {split: rows_of(name, part) for split, part in rows.items()}
            found = member.check(own_rows, own_settings(member, settings), {}, plays)
            notes += [f"{name}: {note}" for note in found]
        return notes

    def shown(self, record: Record) -> Sequence[Shown]:
        return self.members[record["agent"]].shown(record)

    def demonstrations(self, role: str, rows: Sequence[Row], settings: Settings) -> Iterator[Any]:
        for name, member in self.members.items():
            own = own_settings(member, settings)
            yield from member.demonstrations(role, rows_of(name, rows), own)

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        """Return the lessons of all agents in random order: as many right ones of each as for a model
        of its own, and `flawed` of all together.
        """
        found: dict[str, Lessons] = {}
        for name, member in self.members.items():
            own = own_settings(member, settings)
            bad = flawed // len(self.members)
            found[name] = member.lessons(rows_of(name, rows), own, right, bad, random)
        every = found.values()
        right_ones = list(chain.from_iterable(one.right for one in every))
        flawed_ones = list(chain.from_iterable(one.flawed for one in every))
        return Lessons(
            right=random.sample(right_ones, len(right_ones)),
            flawed=random.sample(flawed_ones, len(flawed_ones)),
            characters="".join(one.characters for one in every),
            facts={name: one.facts for name, one in found.items()},
            apart=any(one.apart for one in every),
            vocabulary=2 * max(one.vocabulary for one in every),
        )


def rows_of(name: str, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one agent, as it wrote them."""
    return [row["row"] for row in rows if row[WHOSE] == name]


def weighted(rows: Sequence[Row], weights: Mapping[str, float]) -> list[Row]:
    """Return rows that also say how often their agent's turn comes."""
    return [{**row, WEIGHT: weights[row[WHOSE]]} for row in rows]


def own_settings(member: Agent, settings: Settings) -> Settings:
    """Return the settings with the run's budget, none above the agent's."""
    most = min(settings.max_turns, member.turns)
    fewest = min(settings.min_turns or most, most)
    return settings.of(member.settings).under({"min_turns": fewest, "max_turns": most})


@dataclass
class JointEnvironment(Environment):
    """The environments of all agents in one process."""

    environments: Mapping[str, Environment]
    weights: Mapping[str, float]

    @property
    def highest(self) -> float:  # type: ignore[override]  # a plain number of other environments
        return max(one.highest for one in self.environments.values())

    async def play(self, task: Task, policy: Policy) -> Episode:
        return await self.environments[task.agent].play(task, policy)

    async def score(self, task: Task, episode: Episode) -> Reward:
        return await self.environments[task.agent].score(task, episode)

    def description(self) -> dict[str, Any]:
        agents = {name: one.description() for name, one in self.environments.items()}
        described: dict[str, Any] = {"weights": self.weights, "agents": agents}
        for name, found in agents.items():
            for note in found.pop("notes", []):
                described.setdefault("notes", []).append(f"{name}: {note}")
        return described

    def close(self) -> None:
        for environment in self.environments.values():
            environment.close()


def environment_of(environment: Environment, task: Task) -> Environment:
    """Return the environment of a task's own agent, which knows its episodes and their facts."""
    if isinstance(environment, JointEnvironment):
        return environment.environments[task.agent]
    return environment
