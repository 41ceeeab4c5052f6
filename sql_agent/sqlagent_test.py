"""One question through agent, tool and reward, printed: against any OpenAI-compatible endpoint, no training stack.

    python sql_agent/sqlagent_test.py --base-url http://127.0.0.1:8000/v1 --model tiny
    python sql_agent/sqlagent_test.py --base-url URL --model NAME --question "朵莎洛片怎么保存？"

Works from any working directory. Without --question it takes the first validation question; a question of the data
files is scored with its gold answer, any other one has no reference. The key is OPENAI_API_KEY (environment or .env),
the database DATABASE_URL. Exit codes: 0 done, 1 the endpoint, database or judge failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.settings import ROOT, Settings, SettingsError, load_settings
from data.load import DataError, load_rows
from episodes.openai_agents import Endpoint, Episode, EpisodeError, run_episode
from scoring.judge import choose_judge
from scoring.rubric import Reward
from sql_agent.judge_words import WORDS
from sql_agent.reward import rubric_from, score_episode
from sql_agent.task import Task, TaskError
from tools.sql.query import QueryTool

if TYPE_CHECKING:
    from rich.console import Console

FILES = ("val", "test", "train")


def find_task(question: str | None) -> Task:
    """Return the data's row with this question (the first validation row for None), or a task without a reference."""
    for name in FILES:
        for row in load_rows(ROOT / "data" / f"{name}.parquet"):
            if question is None or row["question"] == question:
                return Task.from_row(row)
    return Task(id="typed", question=question or "", answer="", task_type="unknown", gold=None)


async def run_and_score(
    task: Task, endpoint: Endpoint, settings: Settings, max_turns: int
) -> tuple[Episode, Reward, str]:
    """Run one episode and score it; return both, and the judge's name."""
    judge = choose_judge(settings, WORDS)
    async with asyncio.timeout(settings.episode_timeout):
        episode = await run_episode(task.question, endpoint, QueryTool(settings.database_url), max_turns)
        return episode, await score_episode(task, episode, judge, rubric_from(settings)), judge.name


def show(console: Console, task: Task, episode: Episode, reward: Reward, judge: str) -> None:
    """Print the transcript, then the reward's terms."""
    from rich.table import Table
    from rich.text import Text

    for message in episode.messages:
        console.rule(message["role"], align="left")
        for tool_call in message.get("tool_calls", []):
            console.print(Text(f"{tool_call['function']['name']}({tool_call['function']['arguments']})"))
        if message["content"]:
            console.print(Text(message["content"]))
    table = Table(title=f"task {task.id}, {episode.stop_reason} after {episode.turns} turns, judge {judge}")
    table.add_column("term")
    table.add_column("value", justify="right")
    for name, value in reward.terms.items():
        table.add_row(name, f"{value:.3f}")
    table.add_row("total", f"unscored: {reward.unscored}" if reward.total is None else f"{reward.total:.3f}")
    if task.answer:
        console.print(Text(f"gold answer: {task.answer}"))
    console.print(table)


def parse_arguments(argv: Sequence[str] | None, settings: Settings) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--base-url",
        default=settings.openai_base_url,
        help="such as http://127.0.0.1:8000/v1; default: OPENAI_BASE_URL",
    )
    parser.add_argument("--model", required=True, help="the name the endpoint serves the model under")
    parser.add_argument("--question", help="default: the first validation question")
    parser.add_argument("--max-turns", type=int, default=settings.max_turns)
    parser.add_argument("--temperature", type=float, default=settings.temperature)
    parser.add_argument("--max-tokens", type=int, default=256, help="tokens of one reply")
    arguments = parser.parse_args(argv)
    if not arguments.base_url:
        parser.error(
            "no endpoint: give --base-url, or set OPENAI_BASE_URL, to an OpenAI-compatible server ending in /v1"
        )
    if arguments.max_turns < 1:
        parser.error(f"--max-turns is {arguments.max_turns}; it must be at least 1")
    if arguments.question is not None and not arguments.question.strip():
        parser.error("--question is empty")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    from rich.console import Console

    try:
        settings = load_settings()
        arguments = parse_arguments(argv, settings)
        task = find_task(arguments.question)
    except (SettingsError, DataError, TaskError) as error:
        print(f"sqlagent_test: {error}", file=sys.stderr)
        return 2
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    endpoint = Endpoint(
        arguments.base_url, arguments.model, key, arguments.temperature, max_tokens=arguments.max_tokens
    )
    try:
        done = asyncio.run(run_and_score(task, endpoint, settings, arguments.max_turns))
    except EpisodeError as error:
        print(
            f"sqlagent_test: {error}; is {arguments.base_url} running and serving {arguments.model!r}?", file=sys.stderr
        )
        return 1
    except TimeoutError:
        print(f"sqlagent_test: no end after {settings.episode_timeout:g} s (EPISODE_TIMEOUT)", file=sys.stderr)
        return 1
    show(Console(), task, *done)
    return 0 if done[1].total is not None or done[1].unscored == "no_reference" else 1


if __name__ == "__main__":
    sys.exit(main())
