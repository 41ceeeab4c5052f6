"""Score the episodes of an evaluation again, without a model of the policy.

    .venv/bin/python -m evaluation.rescore outputs/evaluations/sql-mine  # writes sql-mine-rescored beside it
    .venv/bin/python -m evaluation.rescore FOLDER --out FOLDER2 --reward doctoragent

The policy's replies are those of the folder's transcripts. Tools, partner and judge answer again
by today's code, settings and flags. Where nothing changed, every record is the same. What the
machine broke stays unscored. Exit codes: 0 done, 1 failed or episodes without a score, 2 wrong
usage.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.command import UsageError, new_parser, run_command
from common.files import file_digest
from common.settings import Settings, load_settings
from common.terminal import watched
from episodes import registry
from episodes.agent import Agent, Environment, Record
from episodes.episode import Message, Policy, Scored, Task, ToolSpec
from episodes.outcomes import STOP_REASONS, PolicyStop
from episodes.play_and_score import play
from episodes.turns import turns, turns_of, with_turns
from evaluation import results
from evaluation.players import opened_environment
from evaluation.tables import report_of


class Replay(Policy):
    """The policy of a kept episode: it gives the transcript's replies and stops for its reason."""

    def __init__(self, record: Record, max_turns: int) -> None:
        super().__init__(max_turns)
        said = record.get("replies") or record["transcript"]
        self.replies = [one for one in said if one["role"] == "assistant"]
        self.stop_reason = record["stop_reason"]
        self.prompt_tokens = record["prompt_tokens"]
        self.reply_tokens = record.get("reply_tokens") or []  # counted where the loop notes them
        self.completion_tokens = 0 if self.reply_tokens else record["completion_tokens"]

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        """Return the next reply. Raises PolicyStop: the transcript has no further one."""
        if self.turns >= len(self.replies):
            stop = self.stop_reason if self.stop_reason in STOP_REASONS else "max_turns"
            raise PolicyStop(stop)
        self.completion_tokens += self.reply_tokens[self.turns] if self.reply_tokens else 0
        self.turns += 1
        last = self.turns == len(self.replies)
        self.finish_reason = "length" if last and self.stop_reason == "length" else "stop"
        return dict(self.replies[self.turns - 1])


async def scored_again(
    environment: Environment, task: Task, record: Record, settings: Settings
) -> Record:
    """Return the record of an episode as it is scored now, or unchanged if the machine broke it."""
    if record["unscored"]:
        return record
    policy = Replay(record, turns_of(task, settings))
    scored: Scored = await play(
        environment, task, environment.play(task, policy), policy, settings.episode_timeout
    )
    sample = results.Sample(task, record["sample"])
    scored = replace(scored, seconds=record["seconds"])
    return results.recorded(sample, scored, environment).line()


def rescore(agent: Agent, arguments: argparse.Namespace) -> int:
    """Score all episodes of the folder again, and write them to another. Return the exit code.
    Raises UsageError: no policy played them, or the file is not the one that was evaluated.
    """
    scores = results.read_scores(arguments.folder)
    if scores["kind"] in ("gold", "baseline"):
        raise UsageError(
            f"{arguments.folder} has episodes of {scores['model']}, which no policy played; "
            "evaluation.evaluate makes them anew"
        )
    records = results.read_episodes(arguments.folder)
    path = arguments.data or agent.splits["test"]
    if file_digest(path) != scores["data"]["sha256"]:
        raise UsageError(
            f"{path} is not the {scores['data']['file']} that was evaluated; name that with --data"
        )
    settings = load_settings().under({"turns_seed": scores["seed"]})
    settings = with_turns(agent, settings, turns(str(scores["max_turns"])))
    tasks = {row["id"]: agent.task(row, settings) for row in agent.rows(path)}
    own = registry.own_options(agent, arguments)
    with opened_environment(agent, own, arguments.out, settings, "auto") as environment:

        async def all_again() -> list[Record]:
            found = []
            for record in watched(records, "scoring again", "episodes"):
                task = tasks[record["id"]]
                found.append(await scored_again(environment, task, record, settings))
            return found

        again = asyncio.run(all_again())
        now = environment.description()
    # The summaries among them are made anew; baselines were scored as the episodes were
    config = {name: value for name, value in scores.items() if name != "baselines"} | now
    arguments.out.mkdir(parents=True, exist_ok=True)
    new = results.write_results(agent, arguments.out, config, again)
    report_of(agent, new).show()
    changed = sum(old["score"] != new["score"] for old, new in zip(records, again, strict=True))
    print(f"{changed} of {len(again)} episodes have another score\n{arguments.out}")
    return 1 if new["overall"]["unscored"] else 0


def parse_arguments(argv: Sequence[str] | None) -> tuple[Agent, argparse.Namespace]:
    """Return the agent of the folder, and the arguments with that agent's own flags."""
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("folder", type=Path, help="of an evaluation")
    add("--out", type=Path, help="default: the folder's name with -rescored")
    add("--data", type=Path, help="the file that was evaluated; default: the agent's test file")
    add("--force", action="store_true", help="replace what is in --out")
    first, _ = parser.parse_known_args(argv)
    agent = registry.get(results.read_scores(first.folder)["agent"])
    agent.flags.add(parser)
    arguments = parser.parse_args(argv)
    arguments.out = arguments.out or first.folder.with_name(f"{first.folder.name}-rescored")
    if (arguments.out / results.SCORES).exists() and not arguments.force:
        raise UsageError(f"{arguments.out} holds scores; choose another --out, or --force")
    return agent, arguments


def main(argv: Sequence[str] | None = None) -> int:
    return run_command("rescore", lambda: rescore(*parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
