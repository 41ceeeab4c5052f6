"""A small agent without tools, to test what holds for any agent: its policy guesses a word.

A row is {"id", "word", "turns"}; the facts are the number of replies and the share of silent ones.
"""

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from common.settings import Settings
from episodes import agent as contract
from episodes.agent import Options, Row, Sizes
from episodes.episode import AgentError, Episode, Policy, Task
from episodes.outcomes import EpisodeError
from episodes.text_loop import play_with_words
from scoring.rubric import Reward


class GuessingEnvironment(contract.Environment):
    """The partner says no until the word is guessed; it is gone where the word is "gone"."""

    def __init__(self, hint: str) -> None:
        self.hint, self.closed = hint, False

    async def play(self, task: Task, policy: Policy) -> Episode:
        async def respond(reply: str, episode: Episode) -> str | None:
            episode.events.append(reply)
            if task.reference == "gone":
                raise EpisodeError("endpoint_unreachable", "the partner is gone")
            if reply != task.reference:
                return f"no; {self.hint}"
            episode.stop_reason, episode.answer = "answered", reply
            return None

        return await play_with_words(policy, [{"role": "user", "content": task.question}], respond)

    async def score(self, task: Task, episode: Episode) -> Reward:
        if task.reference == "unjudged":
            raise EpisodeError("judge_failed", "no judge")
        found = float(episode.answer == task.reference)
        return Reward(found, {"found": found}, score=found)

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        return {"another word": Episode(answer="wrong", stop_reason="answered")}

    def baselines(self, task: Task, commonest: str) -> Mapping[str, Episode]:
        return {"commonest": Episode(answer=commonest, stop_reason="answered")}

    def record(self, task: Task, episode: Episode) -> contract.Record:
        silent = [not event for event in episode.events]
        share = sum(silent) / len(silent) if silent else None
        facts = {"guesses": float(len(silent)), "silent": share}
        return {"facts": facts, "guesses": list(episode.events)}

    def description(self) -> dict[str, Any]:
        return {"hint": self.hint, "answers": ("no",)}

    def close(self) -> None:
        self.closed = True


class GuessingAgent(contract.Agent):
    """`opened`: the environments made, to see that they are given back."""

    name = "guessing"
    splits: Mapping[str, Path] = {}
    columns = (contract.Column("silent", "silent", interval=True),)

    def __init__(self) -> None:
        self.opened: list[GuessingEnvironment] = []

    def add_flags(self, parser: ArgumentParser) -> None:
        parser.add_argument("--hint", default="guess again")

    def sizes(self, device: str) -> Sizes:
        return Sizes(100, 50, 10) if device == "cpu" else Sizes(1000, 500, 200)

    def rows(self, path: Path) -> list[Row]:
        words = Path(path).read_text(encoding="utf-8").split()
        return [{"id": word, "word": word} for word in words]

    def task(self, row: Row, settings: Settings) -> Task:
        if "word" not in row:
            raise AgentError(f"row {row.get('id')!r} has no word")
        told = {"question": "Which word?", "reference": row["word"]}
        return Task(id=row["id"], max_turns=row.get("turns"), **told)

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Any:
        self.opened.append(GuessingEnvironment(options.get("hint", "none")))
        return self.opened[-1]
