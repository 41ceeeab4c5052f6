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
from episodes.prompts import Prompts, load_prompts
from episodes.text_loop import Ending, play_by_protocol
from episodes.turns import turns_of
from scoring.judge import WITHOUT_A_JUDGE, choose_judge, identity_of, why_unusable
from scoring.llm_judge import JudgeWords
from scoring.rubric import Rubric, parse_rubric

RECORD = "record"
LLM = "llm"
SERVED = "served"


def split_files(name: str) -> dict[str, Path]:
    """Return an agent's data files by split: those of `data/NAME`."""
    folder = ROOT / "data" / name
    return {split: folder / f"{split}.parquet" for split in ("train", "val", "test")}


def partner_model(role: str, kind: str, settings: Settings, llm_name: str) -> str:
    """Return the name of a partner's model. Raises AgentError, with `llm_name`: none is named."""
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
    """environment: what it opens. recipe, partner_recipe: names of modules, which stand above."""

    environment: "type[PartnerEnvironment]"
    recipe: str
    partner_recipe: str

    @property
    def role(self) -> str:
        return self.environment.role

    @abstractmethod
    def check_recorded(self, tasks: Sequence[Any]) -> list[str]:
        """Return notes about what the records can answer. Raises AgentError: they answer nothing."""

    def open(
        self, settings: Settings, options: Options, evaluating: bool = False
    ) -> "PartnerEnvironment":
        return self.environment(settings, options, evaluating)

    def add_flags(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        who = "who answers; default: the record itself"
        add(f"--{self.role}", choices=(RECORD, LLM, SERVED), default=RECORD, help=who)
        model = (
            f"its model, over {self.role.upper()}_MODEL: {self.environment.llm_name} (llm), "
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
        model = partner_model(self.role, SERVED, settings.under(options), self.environment.llm_name)
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
        environment = self.open(settings, {})
        conversations = []
        for task in tasks:
            episode = environment.rehearse(task, environment.gold_steps(task))
            conversations.append(Conversation(episode.messages, [True] * episode.turns))
        return conversations


class PartnerEnvironment(Environment):
    """Plays by the agent's protocol against its partner, and scores by rules or a judge.

    role: what the partner is called. llm_name: what names its model behind an address. by_record:
    the partner without a model. words: the judge's. terms: what is paid by default. own: the
    file of the agent's prompts.
    Raises UsageError: unusable partner, prompts or reward. Raises SettingsError: REWARD_SCALE.
    """

    converses = True
    role: str
    llm_name: str
    by_record: Any
    words: JudgeWords
    terms: Rubric
    own: Path

    def __init__(self, settings: Settings, options: Options, evaluating: bool = False) -> None:
        self.settings = settings
        self.judge = choose_judge(settings, self.words, None)
        self.paid = self.judge is not None
        kind = str(options.get(self.role) or RECORD)
        model = options.get(f"{self.role}_model")
        if kind != RECORD:
            self.partner = self.model(kind, options, evaluating)
        elif model:
            seen = f"--{self.role}-model {model}: the record {self.role} has no model"
            raise AgentError(f"{seen}; add --{self.role}")
        else:
            self.partner = self.by_record
        self.prompts = load_prompts(self.own, options.get("prompts"))
        self.reward = options.get("reward") or "terms"
        self.rubric = rubric_named(self.reward, self.terms)
        self.highest = self.rubric.highest

    @abstractmethod
    def model(self, kind: str, options: Options, evaluating: bool) -> Any:
        """Return the partner that is a model, LLM or SERVED. Raises AgentError: none is named."""

    @abstractmethod
    def read(self, task: Any, reply: str) -> Any:
        """Return an Ending, Malformed, or words for the partner. All but Malformed have `reply`."""

    @abstractmethod
    def words_of(self, said: Any) -> str:
        """Return what the partner is asked, or a person in its place."""

    @abstractmethod
    def past(self, episode: Episode) -> Sequence[Any]:
        """Return what was asked and answered before, as the partner takes it."""

    @abstractmethod
    def noted(self, said: Any, answer: Any, episode: Episode) -> str:
        """Note what was asked and answered among the events, and return the partner's words."""

    @abstractmethod
    def concluded(self, task: Any, diagnosis: str) -> Ending:
        """Return the end with a diagnosis."""

    @abstractmethod
    def gold_steps(self, task: Any, name: str = "") -> list[Any]:
        """Return what a perfect policy says, which may end with another name of the diagnosis."""

    @abstractmethod
    def dishonest_steps(self, task: Any, random: Random) -> Mapping[str, list[Any]]:
        """Return what bad policies say, by kind."""

    def words_for(self, task: Any) -> Prompts:
        """Return the texts that the policy reads in a case."""
        return self.prompts

    async def play(self, task: Task, policy: Policy) -> Episode:
        async def partner(said: Any, episode: Episode) -> str:
            answer = await self.partner.answer(task, self.words_of(said), self.past(episode))
            return self.noted(said, answer, episode)

        read = partial(self.read, task)
        return await play_by_protocol(policy, self.words_for(task), task.question, read, partner)

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        async def person(said: Any, episode: Episode) -> str:
            return await answer(self.words_of(said))

        read = partial(self.read, None)
        return await play_by_protocol(policy, self.prompts, question, read, person)

    def turns(self, task: Task) -> int:
        return turns_of(task, self.settings)

    def rehearse(self, task: Task, steps: Sequence[Any], turns: int = 0) -> Episode:
        """Return the episode with these steps, without those that do not fit before the end."""
        turns = turns or self.turns(task)
        prompts = self.words_for(task)
        ends = [step for step in steps if isinstance(step, Ending)]
        others = [step for step in steps if not isinstance(step, Ending)]
        episode = Episode(prompts.opening(task.question, turns), stop_reason="max_turns")
        for following, step in enumerate([*others[: turns - 1], *ends], 2):
            episode.messages.append({"role": "assistant", "content": step.reply})
            episode.turns += 1
            if isinstance(step, Ending):
                episode.events.append(step)
                episode.answer = str(step)
                episode.stop_reason = "answered"
            else:
                answer = self.by_record.reply_to(task, self.words_of(step), self.past(episode))
                words = prompts.said(self.noted(step, answer, episode), following, turns)
                episode.messages.append({"role": "user", "content": words})
        return episode

    async def honest(self, task: Any) -> Mapping[str, Episode]:
        steps = {"gold": self.gold_steps(task)}
        other = next((name for name in task.names if name != task.reference), None)
        if other:
            steps["alias"] = self.gold_steps(task, other)
        turns = max(self.turns(task), len(steps["gold"]))
        return {kind: self.rehearse(task, said, turns) for kind, said in steps.items()}

    async def gold(self, task: Task) -> Episode:
        return (await self.honest(task))["gold"]

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        steps = self.dishonest_steps(task, random)
        return {kind: self.rehearse(task, said) for kind, said in steps.items()}

    def baselines(self, task: Task, commonest: str) -> Mapping[str, Episode]:
        steps = [self.concluded(task, commonest)] if commonest else []
        return {"commonest": self.rehearse(task, steps)}

    def description(self) -> dict[str, Any]:
        return {
            **self.partner.description,
            "reward_scheme": self.reward,
            "prompts": self.prompts.fingerprint,
            "judge": identity_of(self.judge) if self.judge else "rules",
        }

    async def check(self) -> None:
        await self.partner.check()
        problem = await why_unusable(self.judge, self.words.known_case) if self.judge else None
        if problem:
            raise ServiceError(f"{problem}; start the judge, or {WITHOUT_A_JUDGE}")


def ending_of(episode: Episode) -> Any:
    """Return the Ending of an episode, None without one."""
    return next((event for event in episode.events if isinstance(event, Ending)), None)


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
