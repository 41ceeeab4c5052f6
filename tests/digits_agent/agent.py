"""A second agent, only in the tests: no tools, a protocol of words, a scripted partner, a budget
that differs by task.

The partner keeps two or three digits. "ask 2" is answered with the second; "answer 7 3" ends the
episode. That nothing in the engine, the evaluation, the cold start or the demo is about SQL is
shown by running them on this one.
"""

import re
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import httpx

from common.settings import Settings
from episodes import agent as contract
from episodes.agent import Options, Row, Service, Sizes
from episodes.episode import AgentError, Conversation, Episode, Message, Policy, ServiceError, Task
from episodes.outcomes import EpisodeError
from episodes.row_files import read_rows
from episodes.text_loop import play_with_words
from scoring.rubric import Reward, Rubric

HERE = Path(__file__).parent
RUBRIC = Rubric({"format": 0.1, "digits": 0.9})
ASK, ANSWER = re.compile(r"ask (\d)"), re.compile(r"answer( \d)+")


class DigitsEpisodes(contract.KnownEpisodes):
    async def gold(self, task: Task) -> Episode:
        messages = dialogue(digits_of(task))
        asked = [str(number) for number in range(1, len(digits_of(task)) + 1)]
        return Episode(messages, task.reference, "answered", asked, turns=len(asked) + 1)

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        wrong = " ".join(str((int(digit) + 5) % 10) for digit in digits_of(task))
        return {"others": Episode(answer=f"answer {wrong}", stop_reason="answered", turns=1)}


class DigitsEnvironment(contract.Environment):
    judging = contract.Judging(highest=RUBRIC.highest)
    known = DigitsEpisodes()

    def __init__(self, partner: str, url: str | None) -> None:
        self.partner, self.url = partner, url

    async def play(self, task: Task, policy: Policy) -> Episode:
        digits = digits_of(task)

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

        return await play_with_words(policy, dialogue(digits)[:2], respond)

    async def score(self, task: Task, episode: Episode) -> Reward:
        answer, digits = episode.answer or "", digits_of(task)
        said = answer.removeprefix("answer").split()
        form = float(bool(ANSWER.fullmatch(answer)) and len(said) == len(digits))
        right = sum(a == b for a, b in zip(said, digits, strict=False)) / len(digits)
        terms = RUBRIC.weigh({"format": form, "digits": form * right})
        asked = {"asked": len(episode.events)}
        return Reward(sum(terms.values()), terms, score=form * right, counters=asked)

    def facts(self, task: Task, episode: Episode) -> Mapping[str, float | None]:
        return {"asked_share": min(1.0, len(set(episode.events)) / len(digits_of(task)))}

    def description(self) -> dict[str, Any]:
        return {"partner": self.partner}

    async def check(self) -> None:
        if self.partner == "gone":
            raise ServiceError("the partner is gone; start it, or leave out --partner")
        if self.url and httpx.get(f"{self.url}/models", trust_env=False).status_code != 200:
            raise ServiceError(f"the partner's model does not answer at {self.url}")


class DigitsFlags(contract.Flags):
    unreachable: Mapping[str, str] = {"partner": "gone"}

    def add(self, parser: ArgumentParser) -> None:
        parser.add_argument("--partner", choices=("here", "gone"), default="here")
        parser.add_argument("--partner-model", metavar="DIR", help="served for the run")

    def services(self, settings: Settings, options: Options) -> Sequence[Service]:
        model = options.get("partner_model")
        return [Service("partner_url", model)] if model else []


class DigitsShowing(contract.Showing):
    headline = "asked_share"
    columns = (contract.Column("asked", "asked_share", interval=True),)


class DigitsTeaching(contract.Teaching):
    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> list[Conversation]:
        heard = [dialogue(row["digits"]) for row in rows]
        return [Conversation(messages, [True] * (len(messages) // 2)) for messages in heard]

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> contract.Lessons:
        drawn = [drawn_row(random) for _ in range(right)]
        taught = self.demonstrations("policy", drawn, settings)
        return contract.Lessons(taught, [], "0123456789", {})


class DigitsAgent(contract.Agent):
    name = "digits"
    splits: Mapping[str, Path] = {
        split: HERE / f"{split}.jsonl" for split in ("train", "val", "test")
    }
    flags = DigitsFlags()
    showing = DigitsShowing()
    teaching = DigitsTeaching()

    def sizes(self, device: str) -> Sizes:
        return Sizes(prompt=96, response=160, reply=24)

    def rows(self, path: Path | str) -> list[Row]:
        return read_rows(path, "digits")

    def task(self, row: Row, settings: Settings) -> Task:
        digits = str(row.get("digits"))
        if not re.fullmatch(r"\d{2,3}", digits):
            raise AgentError(
                f"row {row.get('id')!r}: digits is {digits!r}; expected two or three digits"
            )
        question, answer = (dialogue(digits)[at]["content"] for at in (1, -1))
        known = {"id": row["id"], "task_type": row["task_type"], "question": question}
        return Task(**known, reference=answer, max_turns=len(digits) + 1)

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Any:
        return DigitsEnvironment(options.get("partner", "here"), options.get("partner_url"))


def dialogue(digits: str) -> list[Message]:
    """Return the messages of an episode that asks for every digit, then answers them."""
    question = [
        {"role": "system", "content": "ask N for a digit, then answer them"},
        {"role": "user", "content": f"{len(digits)} digits"},
    ]
    asked = [
        {"role": role, "content": content}
        for number, digit in enumerate(digits, 1)
        for role, content in (("assistant", f"ask {number}"), ("user", digit))
    ]
    return [*question, *asked, {"role": "assistant", "content": f"answer {' '.join(digits)}"}]


def drawn_row(random: Random) -> Row:
    return {"digits": "".join(random.choices("0123456789", k=random.choice((2, 3))))}


def digits_of(task: Task) -> str:
    return "".join(task.reference.split()[1:])


AGENT = DigitsAgent()
