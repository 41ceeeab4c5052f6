"""A second agent, only in the tests: no tools, a protocol of words, a scripted partner, a budget
that differs by task.

The partner keeps two or three digits. "ask 2" is answered with the second; "answer 7 3" ends the
episode. That nothing in the engine, the evaluation, the cold start or the demo is about SQL is
shown by running them on this one.
"""

from __future__ import annotations

import json
import random
import re
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx

from common.settings import Settings
from episodes.agent import Agent, Column, Environment, Lessons, Options, Record, Row, Service, Sizes
from episodes.episode import AgentError, Conversation, Episode, Policy, ServiceError, Task
from episodes.outcomes import EpisodeError
from episodes.text_loop import play_with_words
from scoring.rubric import Reward, Rubric

HERE = Path(__file__).parent
RUBRIC = Rubric({"format": 0.1, "digits": 0.9})
RULES = "ask N for a digit, then answer them"
ASK, ANSWER = re.compile(r"ask (\d)"), re.compile(r"answer( \d)+")


@dataclass(frozen=True, kw_only=True)
class DigitsTask(Task):
    digits: str


class DigitsEnvironment(Environment):
    highest = RUBRIC.highest

    def __init__(self, partner: str, url: str | None) -> None:
        self.partner, self.url = partner, url

    async def play(self, task: Task, policy: Policy) -> Episode:
        digits = _own(task).digits

        async def respond(reply: str, episode: Episode) -> str | None:
            if self.partner == "gone":
                raise EpisodeError("endpoint_unreachable", "the partner is gone")
            if found := ASK.fullmatch(reply.strip()):
                episode.events.append(found[1])
                at = int(found[1]) - 1
                return digits[at] if 0 <= at < len(digits) else "no such digit"
            episode.answer = reply.strip() or None
            episode.stop_reason = "answered" if episode.answer else "no_answer"
            return None

        return await play_with_words(policy, first_messages(_own(task)), respond)

    async def score(self, task: Task, episode: Episode) -> Reward:
        said = (episode.answer or "").removeprefix("answer").split()
        form = float(
            bool(ANSWER.fullmatch(episode.answer or "")) and len(said) == len(_own(task).digits)
        )
        right = sum(a == b for a, b in zip(said, _own(task).digits, strict=False)) / len(
            _own(task).digits
        )
        terms = RUBRIC.weigh({"format": form, "digits": form * right})
        return Reward(
            sum(terms.values()), terms, score=form * right, counters={"asked": len(episode.events)}
        )

    async def gold(self, task: Task) -> Episode:
        conversation = conversation_of(_own(task))
        answer = conversation.messages[-1]["content"]
        asked = [str(number + 1) for number in range(len(_own(task).digits))]
        return Episode(conversation.messages, answer, "answered", asked, len(conversation.learn))

    def bad(self, task: Task, random: Random) -> Episode:
        wrong = " ".join(str((int(digit) + 5) % 10) for digit in _own(task).digits)
        return Episode(answer=f"answer {wrong}", stop_reason="answered", turns=1)

    def facts(self, task: Task, episode: Episode) -> Mapping[str, float | None]:
        share = len(set(episode.events)) / len(_own(task).digits)
        return {"asked_share": min(1.0, share)}

    def description(self) -> dict[str, Any]:
        return {"partner": self.partner}

    async def check(self) -> None:
        if self.partner == "gone":
            raise ServiceError("the partner is gone; start it, or leave out --partner")
        if self.url and httpx.get(f"{self.url}/models", trust_env=False).status_code != 200:
            raise ServiceError(f"the partner's model does not answer at {self.url}")


class DigitsAgent(Agent):
    name = "digits"
    prompt_version = "1"
    splits: Mapping[str, Path] = {
        split: HERE / f"{split}.jsonl" for split in ("train", "val", "test")
    }
    headline = "asked_share"
    columns = (Column("asked", "asked_share", interval=True),)
    failures = ("right", "wrong")
    unreachable: Mapping[str, str] = {"partner": "gone"}

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--partner", choices=("here", "gone"), default="here", help="who keeps the digits"
        )
        parser.add_argument(
            "--partner-model", metavar="DIR", help="a model to serve for the length of the run"
        )

    def services(self, settings: Settings, options: Options) -> Sequence[Service]:
        return (
            [Service("partner_url", options["partner_model"])]
            if options.get("partner_model")
            else []
        )

    def sizes(self, device: str) -> Sizes:
        return Sizes(prompt=96, response=160, reply=24)

    def rows(self, path: Path | str) -> list[Row]:
        return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]

    def task(self, row: Row, settings: Settings) -> DigitsTask:
        if not re.fullmatch(r"\d{2,3}", str(row.get("digits"))):
            raise AgentError(
                f"row {row.get('id')!r}: digits is {row.get('digits')!r}; expected two or three digits"
            )
        digits = str(row["digits"])
        return DigitsTask(
            id=row["id"],
            question=f"{len(digits)} digits",
            reference=f"answer {' '.join(digits)}",
            task_type=row["task_type"],
            max_turns=len(digits) + 1,
            digits=digits,
        )

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        return DigitsEnvironment(options.get("partner", "here"), options.get("partner_url"))

    def summarise(self, records: Sequence[Record]) -> Mapping[str, Any]:
        return {"three_digits": sum(record["task_type"] == "three" for record in records)}

    def failure(self, record: Record) -> str:
        return "right" if record["score"] == 1 else "wrong"

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        return [conversation_of(self.task(row, settings)) for row in rows]

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        made = [random_row(random, number) for number in range(right)]
        return Lessons(
            [conversation_of(self.task(row, settings)) for row in made], [], "0123456789", {}
        )


def first_messages(task: DigitsTask) -> list[dict[str, Any]]:
    return [{"role": "system", "content": RULES}, {"role": "user", "content": task.question}]


def conversation_of(task: DigitsTask) -> Conversation:
    """Ask for every digit, then answer them."""
    messages = first_messages(task)
    for number, digit in enumerate(task.digits, 1):
        messages += [
            {"role": "assistant", "content": f"ask {number}"},
            {"role": "user", "content": digit},
        ]
    messages.append({"role": "assistant", "content": task.reference})
    return Conversation(messages, [True] * (len(task.digits) + 1))


def random_row(chance: Random, number: int) -> Row:
    digits = "".join(chance.choices("0123456789", k=chance.choice((2, 3))))
    return {
        "id": f"d{number}",
        "task_type": "two" if len(digits) == 2 else "three",
        "digits": digits,
    }


def _own(task: Task) -> DigitsTask:
    assert isinstance(task, DigitsTask)
    return task


AGENT = DigitsAgent()

if (
    __name__ == "__main__"
):  # makes the three files beside it: .venv/bin/python -m tests.digits_agent.agent
    chance = random.Random(0)
    for split, count in (("train", 64), ("val", 16), ("test", 24)):
        lines = [json.dumps(random_row(chance, number)) for number in range(count)]
        AGENT.splits[split].write_text("\n".join(lines) + "\n", encoding="utf-8")
