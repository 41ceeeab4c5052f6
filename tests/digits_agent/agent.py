"""An agent that only the tests have: no tools, a scripted partner, a budget that differs by task.

The partner keeps two or three digits. "ask 2" is answered with the second; "answer 7 3" ends.
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

RUBRIC = Rubric({"format": 0.1, "digits": 0.9})
ASK = re.compile(r"ask (\d)")


class DigitsEnvironment(contract.Environment):
    highest = RUBRIC.highest

    def __init__(self, partner: str, url: str | None) -> None:
        self.partner, self.url = partner, url

    async def play(self, task: Task, policy: Policy) -> Episode:
        digits = task.reference.split()[1:]

        async def respond(reply: str, episode: Episode) -> str | None:
            if self.partner == "gone":
                raise EpisodeError("endpoint_unreachable", "the partner is gone")
            if found := ASK.fullmatch(reply.strip()):
                episode.events.append(found[1])
                return dict(enumerate(digits, 1)).get(int(found[1]), "no such digit")
            episode.answer = reply.strip() or None
            episode.stop_reason = "answered" if episode.answer else "no_answer"
            return None

        return await play_with_words(policy, dialogue(digits)[:2], respond)

    async def score(self, task: Task, episode: Episode) -> Reward:
        said, gold = (episode.answer or "").split(), task.reference.split()
        form = float(said[:1] == gold[:1] and len(said) == len(gold))
        right = sum(a == b for a, b in zip(said[1:], gold[1:], strict=False)) / len(gold[1:])
        terms = RUBRIC.weigh({"format": form, "digits": form * right})
        asked = {"asked": len(episode.events)}
        return Reward(sum(terms.values()), terms, score=form * right, counters=asked)

    async def gold(self, task: Task) -> Episode:
        digits = task.reference.split()[1:]
        asked = [str(number) for number in range(1, len(digits) + 1)]
        return Episode(dialogue(digits), task.reference, "answered", asked, turns=len(asked) + 1)

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        wrong = " ".join(str((int(digit) + 5) % 10) for digit in task.reference.split()[1:])
        return {"others": Episode(answer=f"answer {wrong}", stop_reason="answered", turns=1)}

    def record(self, task: Task, episode: Episode) -> contract.Record:
        share = len(set(episode.events)) / len(task.reference.split()[1:])
        return {"facts": {"asked_share": min(1.0, share)}}

    def description(self) -> dict[str, Any]:
        return {"partner": self.partner}

    async def check(self) -> None:
        if self.partner == "gone":
            raise ServiceError("the partner is gone; start it, or leave out --partner")
        if self.url and httpx.get(f"{self.url}/models", trust_env=False).status_code != 200:
            raise ServiceError(f"the partner's model does not answer at {self.url}")


class DigitsAgent(contract.Agent):
    name = "digits"
    splits: Mapping[str, Path] = {path.stem: path for path in Path(__file__).parent.glob("*.jsonl")}
    columns = (contract.Column("asked", "asked_share", interval=True),)

    def sizes(self, device: str) -> Sizes:
        return Sizes(prompt=96, response=160, reply=24)

    def rows(self, path: Path) -> list[Row]:
        return read_rows(path, "digits")

    def task(self, row: Row, settings: Settings) -> Task:
        digits = str(row.get("digits"))
        if not re.fullmatch(r"\d{2,3}", digits):
            raise AgentError(f"row {row.get('id')!r}: expected two or three digits, got {digits!r}")
        question, answer = (dialogue(digits)[at]["content"] for at in (1, -1))
        known = {"id": row["id"], "task_type": row["task_type"], "question": question}
        return Task(**known, reference=answer, max_turns=len(digits) + 1)

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Any:
        return DigitsEnvironment(options.get("partner", "here"), options.get("partner_url"))

    def add_flags(self, parser: ArgumentParser) -> None:
        parser.add_argument("--partner", choices=("here", "gone"), default="here")
        parser.add_argument("--partner-model", metavar="DIR", help="served for the run")

    def services(self, settings: Settings, options: Options) -> Sequence[Service]:
        model = options.get("partner_model")
        return [Service("partner_url", model)] if model else []

    def demonstrations(self, role: str, rows: Sequence[Row], settings: Settings) -> Any:
        heard = [dialogue(row["digits"]) for row in rows]
        return [Conversation(messages, [True] * (len(messages) // 2)) for messages in heard]

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> contract.Lessons:
        sizes = random.choices((2, 3), k=right)
        drawn = [{"digits": "".join(random.choices("0123456789", k=size))} for size in sizes]
        return contract.Lessons(
            self.demonstrations("policy", drawn, settings), [], "0123456789", {}
        )


def dialogue(digits: Sequence[str]) -> list[Message]:
    """Return the messages of an episode that asks for every digit, then answers them."""
    said = [("system", "ask N for a digit, then answer them"), ("user", f"{len(digits)} digits")]
    for number, digit in enumerate(digits, 1):
        said += [("assistant", f"ask {number}"), ("user", digit)]
    said.append(("assistant", f"answer {' '.join(digits)}"))
    return [{"role": role, "content": content} for role, content in said]


AGENT = DigitsAgent()
