"""What agents have in common whose policy talks with a partner: the case's record or a model."""

from abc import abstractmethod
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from common.command import UsageError
from common.settings import ROOT, Settings
from episodes.agent import Agent, Answer, Environment, Lessons, Options, Row, Service
from episodes.episode import AgentError, Conversation, Episode, Policy, ServiceError, Task
from episodes.prompts import Prompts
from episodes.text_loop import Ending, play_by_protocol
from episodes.turns import turns_of
from scoring.judge import WITHOUT_A_JUDGE, choose_judge, why_unusable
from scoring.llm_judge import JudgeWords
from scoring.rubric import Rubric, parse_rubric

RECORD = "record"
LLM = "llm"
SERVED = "served"


def split_files(name: str) -> dict[str, Path]:
    """Return an agent's data files by split: those of `data/NAME`."""
    folder = ROOT / "data" / name
    return {split: folder / f"{split}.parquet" for split in ("train", "val", "test")}


def partner_kind(role: str, options: Options) -> str:
    """Return what --ROLE names, the record by default.

    Raises AgentError: a model is named, which the record does not use.
    """
    kind = str(options.get(role) or RECORD)
    model = options.get(f"{role}_model")
    if kind == RECORD and model:
        raise AgentError(f"--{role}-model {model}: the record {role} has no model; add --{role}")
    return kind


def partner_model(role: str, kind: str, settings: Settings, llm_name: str) -> str:
    """Return the name of a partner's model. `llm_name` says in the error what names one.

    Raises AgentError: neither the flag nor the settings name a model.
    """
    model: str | None = getattr(settings, f"{role}_model")
    if model:
        return model
    expected = "a model folder or hub id" if kind == SERVED else llm_name
    raise AgentError(
        f"--{role} {kind} needs {expected}; give --{role}-model or set {role.upper()}_MODEL"
    )


def rubric_named(reward: str, own: Rubric) -> Rubric:
    """Return what --reward names: an agent's own terms, or weights of them. Raises AgentError."""
    if reward == "terms":
        return own
    try:
        return parse_rubric(reward, sorted(own.names))
    except UsageError as error:
        weights = ",".join(f"{name}=1" for name in own.weights)
        expected = f"expected terms, or weights such as {weights}"
        raise AgentError(f"--reward {reward}: {error}; {expected}") from None


class PartnerAgent(Agent):
    """role: what the partner is called. llm_name: what names its model behind an address.

    recipe, partner_recipe: modules of lessons by name, because recipes stand above everything.
    """

    role: str
    llm_name: str
    recipe: str
    partner_recipe: str

    @abstractmethod
    def check_recorded(self, tasks: Sequence[Any]) -> list[str]:
        """Return notes about what the records can answer. Raises AgentError: they answer nothing."""

    @abstractmethod
    def rehearsed(self, task: Any, turns: int) -> Episode:
        """Return the gold episode of a task in so many turns."""

    def add_flags(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        who = "who answers; default: the record itself"
        add(f"--{self.role}", choices=(RECORD, LLM, SERVED), default=RECORD, help=who)
        model = (
            f"its model, over {self.role.upper()}_MODEL: {self.llm_name} (llm), "
            "a model folder or hub id (served)"
        )
        add(f"--{self.role}-model", metavar="MODEL", help=model)
        own = f"{self.name}_agent"
        scheme = f"what is paid: terms ({own}/rewards.toml), or weights: NAME=WEIGHT,..."
        add("--reward", metavar="SCHEME", default="terms", help=scheme)
        prompts = f"other words for the doctor, as in {own}/prompts.toml"
        add("--prompts", metavar="FILE", help=prompts)

    def services(self, settings: Settings, options: Options) -> Sequence[Service]:
        if options.get(self.role) != SERVED:
            return []
        model = partner_model(self.role, SERVED, settings.under(options), self.llm_name)
        return [Service(f"{self.role}_url", model)]

    def check(
        self,
        rows: Mapping[str, Sequence[Row]],
        settings: Settings,
        options: Options,
        plays: bool = True,
    ) -> list[str]:
        if (options.get(self.role) or RECORD) != RECORD:
            return []
        notes = []
        for name, part in rows.items():
            tasks = [self.task(row, settings) for row in part]
            notes += [f"{name}: {note}" for note in self.check_recorded(tasks)]
        return notes

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        """Return lessons about newly drawn patients: the rows are too few to learn from."""
        made: Lessons = import_module(self.recipe).lessons(right, flawed, random)
        return made

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        if role not in ("policy", self.role):
            return super().demonstrations(role, rows, settings)
        tasks = [self.task(row, settings) for row in rows]
        if role == self.role:
            made: Iterable[Conversation] = import_module(self.partner_recipe).partner_lessons(tasks)
            return made
        conversations = []
        for task in tasks:
            episode = self.rehearsed(task, turns_of(task, settings))
            conversations.append(Conversation(episode.messages, [True] * episode.turns))
        return conversations


class PartnerEnvironment(Environment):
    """Plays by the agent's protocol against its partner, and scores by rules or a judge.

    words: the judge's. Raises SettingsError: REWARD_SCALE cannot be used.
    """

    converses = True
    partner: Any  # has `description` and `check`
    prompts: Prompts

    def __init__(self, settings: Settings, words: JudgeWords) -> None:
        self.settings = settings
        self.words = words
        self.judge = choose_judge(settings, words, None)
        self.paid = self.judge is not None

    @property
    def judge_name(self) -> str | None:
        """The judge's name. An LLM's is its model's."""
        name = self.judge.name if self.judge else "rules"
        return self.settings.teacher_model if name == "llm" else name

    @abstractmethod
    def read(self, task: Any, reply: str) -> Any:
        """Return what a reply says: an Ending, Malformed, or something for the partner."""

    @abstractmethod
    async def answered(self, task: Any, said: Any, episode: Episode) -> str:
        """Return the partner's words and note the event. Raises EpisodeError: the partner failed."""

    @abstractmethod
    def words_of(self, said: Any) -> str:
        """Return what a person is asked in the partner's place."""

    @abstractmethod
    def other_name(self, task: Any) -> str | None:
        """Return another name of the diagnosis, None without one."""

    @abstractmethod
    def rehearsed(self, task: Any, name: str = "") -> Episode:
        """Return the gold episode, which may end with another name of the diagnosis."""

    def words_for(self, task: Any) -> Prompts:
        """Return the texts that the policy reads in a case."""
        return self.prompts

    async def play(self, task: Task, policy: Policy) -> Episode:
        read = partial(self.read, task)
        partner = partial(self.answered, task)
        return await play_by_protocol(policy, self.words_for(task), task.question, read, partner)

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        async def person(said: Any, episode: Episode) -> str:
            return await answer(self.words_of(said))

        read = partial(self.read, None)
        return await play_by_protocol(policy, self.prompts, question, read, person)

    def turns(self, task: Task) -> int:
        """Return the number of turns that a task has."""
        return turns_of(task, self.settings)

    async def gold(self, task: Task) -> Episode:
        return self.rehearsed(task)

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        found = {"gold": self.rehearsed(task)}
        other = self.other_name(task)
        if other:
            found["alias"] = self.rehearsed(task, other)
        return found

    async def check(self) -> None:
        await self.partner.check()
        problem = await why_unusable(self.judge, self.words.known_case) if self.judge else None
        if problem:
            raise ServiceError(f"{problem}; start the judge, or {WITHOUT_A_JUDGE}")


def rehearse(
    prompts: Prompts,
    question: str,
    turns: int,
    steps: Sequence[Any],
    spoken: Callable[[Any], str],
    answer: Callable[[Any, Episode], str],
) -> Episode:
    """Return the episode in which a policy takes these steps, the last of which may be an Ending.

    spoken: gives the reply of a step. answer: notes the event of a step and gives the partner's words.
    """
    episode = Episode(prompts.opening(question, turns), stop_reason="max_turns")
    for following, step in enumerate(steps, 2):
        episode.messages.append({"role": "assistant", "content": spoken(step)})
        episode.turns += 1
        if isinstance(step, Ending):
            episode.events.append(step)
            episode.answer = str(step)
            episode.stop_reason = "answered"
        else:
            words = prompts.said(answer(step, episode), following, turns)
            episode.messages.append({"role": "user", "content": words})
    return episode


def dialogue_of(
    events: Sequence[Any], episode: Episode, turns: Callable[[Any, str], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return the dialogue of an episode for its record. `turns`: those of an event and its reply."""
    replies = [message for message in episode.messages if message["role"] == "assistant"]
    dialogue = list[dict[str, Any]]()
    for number, (event, reply) in enumerate(zip(events, replies, strict=False)):
        own, *partners = turns(event, str(reply["content"]))
        if number < len(episode.reply_tokens):  # a rehearsed episode has none
            own["tokens"] = episode.reply_tokens[number]
        dialogue += [own, *partners]
    return dialogue
