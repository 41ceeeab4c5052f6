"""Evaluate a model on a file of tasks, with the agent, the environment and the scoring of training.

    .venv/bin/python -m evaluation.evaluate sql --model sql_agent/tiny_model               # starts vLLM itself
    .venv/bin/python -m evaluation.evaluate sql --model runs/NAME --n 300 --k 4            # a run's latest checkpoint
    .venv/bin/python -m evaluation.evaluate sql --model NAME --base-url http://127.0.0.1:8000/v1
    .venv/bin/python -m evaluation.evaluate sql --model anthropic/NAME                     # any provider of litellm
    .venv/bin/python -m evaluation.evaluate sql --gold                                     # must be 100
    .venv/bin/python -m evaluation.evaluate sql --baseline checklist                       # a floor, without a model
    .venv/bin/python -m evaluation.evaluate sql --model runs/NAME --with-baselines         # beside all floors

Writes `scores.json`, `table.md` and `episodes.jsonl` into --out; docs/evaluate-and-serve.md says what is in
them. The same command goes on where an interrupted one stopped. Exit codes: 0 done, 1 failed or
some episodes are unscored, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common.command import Failure, new_parser, positive, run_command
from common.files import file_digest
from common.journal import Journal, open_journal, run_all
from common.settings import ROOT, Settings, load_settings
from common.startup import collect_rarely
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent, Environment, Record
from episodes.episode import AgentError, Episode, Scored, Task
from episodes.play_and_score import play
from episodes.turns import turns_of, with_turns
from evaluation import results
from evaluation.baselines import baseline_episode, commonest_answer, names_of
from evaluation.metrics import scores_of
from evaluation.players import MODELS, Player, add_flags, model_player, opened, reply_tokens
from evaluation.tables import report_of

DEFAULT_FOLDER = ROOT / "outputs" / "evaluations"


class Unscored(Exception):
    """An episode without a score."""


def parse_arguments(
    argv: Sequence[str] | None, settings: Settings
) -> tuple[Agent, argparse.Namespace]:
    """Return the agent and the flags. The agent is read first, because it adds flags of its own."""
    parser = new_parser(__doc__, prog="python -m evaluation.evaluate")
    agent = registry.add_agent(parser, argv)
    _add_player(parser, agent)
    tasks = parser.add_argument_group("tasks")
    tasks.add_argument("--data", type=Path, metavar="FILE", help="default: the agent's test file")
    tasks.add_argument(
        "--n",
        type=positive(int),
        metavar="N",
        help="a sample of N tasks, each task type with its share; default: all",
    )
    tasks.add_argument(
        "--k", type=positive(int), default=1, metavar="K", help="episodes of each task; default: 1"
    )
    tasks.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="SEED",
        help="draws the sample, budgets of turns and the intervals; default: 0",
    )
    _add_output(parser, agent)
    add_flags(parser, settings)
    arguments = parser.parse_args(argv)
    if arguments.k > 1 and (not arguments.model or arguments.temperature == 0):
        parser.error(f"--k {arguments.k}: every episode of a task would be the same; leave --k out")
    if arguments.base_url and not arguments.model:
        parser.error("--base-url needs --model, the name the endpoint serves the model under")
    agent = registry.get(arguments.agent)
    arguments.data = arguments.data or agent.splits["test"]
    return agent, arguments


def _add_player(parser: argparse.ArgumentParser, agent: Agent | None) -> None:
    """Add the flags that say who plays."""
    group = parser.add_argument_group("who plays")
    who = group.add_mutually_exclusive_group(required=True)
    who.add_argument("--model", metavar="MODEL", help=MODELS)
    who.add_argument(
        "--gold",
        action="store_true",
        help="the agent's gold episodes, without a model: must be 100",
    )
    who.add_argument(
        "--baseline",
        choices=names_of(agent) if agent else None,
        help="a baseline, without a model (docs/evaluate-and-serve.md)",
    )
    group.add_argument(
        "--with-baselines", action="store_true", help="also play every baseline on the same tasks"
    )


def _add_output(parser: argparse.ArgumentParser, agent: Agent | None) -> None:
    """Add the flags that say where results go, and how many episodes run at once."""
    group = parser.add_argument_group("run")
    group.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the results; default: a folder in outputs/evaluations, named by the flags",
    )
    group.add_argument("--force", action="store_true", help="discard what is in --out")
    group.add_argument(
        "--concurrency",
        type=positive(int),
        default=32,
        metavar="N",
        help="episodes at a time; default: 32",
    )


def choose_player(agent: Agent, arguments: argparse.Namespace, settings: Settings) -> Player:
    """Return the player that the flags name; a run means its latest checkpoint."""
    if not arguments.model:
        return Player("gold", "gold") if arguments.gold else Player("baseline", arguments.baseline)
    return model_player(agent, arguments.model, arguments.base_url, settings)


def configuration(
    agent: Agent,
    arguments: argparse.Namespace,
    player: Player,
    environment: Environment,
    tasks: int,
) -> dict[str, Any]:
    """Return all that the scores depend on, as JSON values. An evaluation with an equal
    configuration may be continued.
    """
    sampling = {
        "temperature": arguments.temperature,
        "top_p": 1.0,
        "max_tokens": arguments.max_tokens,
    }
    return {
        "agent": agent.name,
        **player.fingerprint(),
        "data": {
            "file": arguments.data.name,
            "sha256": file_digest(arguments.data),
            "questions": tasks,
        },
        "k": arguments.k,
        "seed": arguments.seed,
        "sampling": sampling if player.samples else None,
        "max_turns": arguments.max_turns,
        **reading_of(arguments),
        "prompt_version": agent.prompt_version,
        **environment.description(),
    }


def reading_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return how a model is read that is served here, as far as that was said."""
    said = {"thinking": arguments.thinking, "tool_parser": arguments.tool_parser}
    return {name: value for name, value in said.items() if value}


def default_folder(config: dict[str, Any]) -> Path:
    """Return a folder name that only this configuration leads to."""
    parts = [
        part
        for part in Path(config["model"]).parts
        if part not in ("/", "actor", "huggingface", "checkpoints")
    ]
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    return DEFAULT_FOLDER / "-".join([config["agent"], *parts[-2:], digest])


async def play_sample(
    task: Task,
    player: Player,
    endpoint: Any,
    environment: Environment,
    settings: Settings,
    commonest: str,
) -> Scored:
    """Play an episode and score it; `endpoint` is None for a player without a model. `commonest` is
    the answer that most tasks have.
    """
    from episodes.policy import ChatPolicy

    policy = ChatPolicy(endpoint, turns_of(task, settings)) if player.samples else None
    if policy:
        episode: Awaitable[Episode] = environment.play(task, policy)
    else:
        episode = (
            _gold(environment, task)
            if player.kind == "gold"
            else baseline_episode(environment, player.name, task, commonest)
        )
    return await play(environment, task, episode, policy, settings.episode_timeout)


async def _gold(environment: Environment, task: Task) -> Episode:
    episode = await environment.known.gold(task)
    if episode is None:
        raise AgentError(f"task {task.id} has no gold episode; --gold needs one of every task")
    return episode


async def play_all(
    samples: Sequence[results.Sample],
    play_one: Callable[[results.Sample], Awaitable[Record]],
    journal: Journal,
    concurrency: int,
) -> dict[str, Record]:
    """Play what the journal does not hold yet, once more what stayed unscored; return the records
    still unscored.

    Raises RunError if nothing was scored before, and many fail one after the other.
    """
    unscored: dict[str, Record] = {}

    async def work(sample: results.Sample) -> Record:
        record = await play_one(sample)
        if record["score"] is None:
            unscored[sample.key] = record
            raise Unscored(record["detail"] or record["unscored"])
        unscored.pop(sample.key, None)
        return record

    how: dict[str, Any] = {
        "key": lambda sample: sample.key,
        "work": work,
        "journal": journal,
        "concurrency": concurrency,
        "failures": Unscored,
    }
    # What failed before fails again, one after the other, and proves nothing
    goes_on = any(sample.key in journal for sample in samples)
    await run_all(samples, title="episodes", bounded=not goes_on, **how)
    if unscored:
        again = [sample for sample in samples if sample.key in unscored]
        await run_all(again, title="unscored episodes again", bounded=False, **how)
    return unscored


def evaluate(agent: Agent, arguments: argparse.Namespace, settings: Settings) -> int:
    """Play, score and write; returns the exit code."""
    agent.flags.complete(arguments)
    player = choose_player(agent, arguments, settings)
    arguments.max_tokens = arguments.max_tokens or reply_tokens(agent, player, arguments.thinking)
    settings = with_turns(
        agent, settings.under({"turns_seed": arguments.seed}), arguments.max_turns
    )
    fewest, most = settings.min_turns, settings.max_turns
    arguments.max_turns = most if fewest == most else f"{fewest}-{most}"
    rows = results.sample_rows(agent.rows(arguments.data), arguments.n, arguments.seed)
    tasks = [agent.task(row, settings) for row in rows]
    own = registry.own_options(agent, arguments)
    for note in agent.flags.check(tasks, own):
        print(note, file=sys.stderr)
    with contextlib.closing(agent.open(settings, own, evaluating=True)) as environment:
        config = configuration(agent, arguments, player, environment, len(rows))
    samples = [results.Sample(task, number) for task in tasks for number in range(arguments.k)]
    folder: Path = arguments.out or default_folder(config)
    if not arguments.force and results.finished(folder, config):
        print(
            f"{folder} has these scores already; --force plays all episodes again", file=sys.stderr
        )
        scores = results.read_scores(folder)
    else:
        scores = play_and_write(agent, player, samples, folder, config, arguments, settings)
    if arguments.with_baselines and "baselines" not in scores:
        scores = beside_baselines(agent, scores, samples, folder, arguments, settings)
    return report(agent, scores, folder)


def play_and_write(
    agent: Agent,
    player: Player,
    samples: Sequence[results.Sample],
    folder: Path,
    config: dict[str, Any],
    arguments: argparse.Namespace,
    settings: Settings,
) -> dict[str, Any]:
    """Play what an earlier command did not finish, write the results and return the scores. The
    journal stays while an episode has no score.
    """
    folder.mkdir(parents=True, exist_ok=True)
    others = [folder / results.SCORES, folder / results.TABLE]
    with open_journal(
        folder / results.EPISODES, config, force=arguments.force, others=others
    ) as journal:
        unscored: dict[str, Any] = {}
        if any(sample.key not in journal for sample in samples):
            with (
                player_opened(agent, player, samples, folder, arguments, settings) as play_one,
                results.traceback_kept(folder),
            ):
                unscored = asyncio.run(play_all(samples, play_one, journal, arguments.concurrency))
        records = [unscored[s.key] if s.key in unscored else journal.get(s.key) for s in samples]
        scores = results.write_results(agent, folder, config, records)
        if not unscored:
            journal.remove()
    return scores


def beside_baselines(
    agent: Agent,
    scores: dict[str, Any],
    samples: Sequence[results.Sample],
    folder: Path,
    arguments: argparse.Namespace,
    settings: Settings,
) -> dict[str, Any]:
    """Play every baseline once on each task, write its scores beside those of the player, and
    return them all.

    Raises Failure: an episode of a baseline has no score.
    """
    first = [sample for sample in samples if sample.number == 0]

    async def play_every(play_one: Callable[[results.Sample], Awaitable[Record]]) -> list[Record]:
        return [await play_one(sample) for sample in first]

    found = {}
    for name in names_of(agent):
        player = Player("baseline", name)
        with player_opened(agent, player, first, folder, arguments, settings) as play_one:
            records = asyncio.run(play_every(play_one))
        failed = next((record for record in records if record["score"] is None), None)
        if failed:
            why = failed["detail"] or failed["unscored"]
            raise Failure(f"baseline {name}, task {failed['id']} has no score: {why}")
        found[name] = scores_of(agent, records, arguments.seed)
    return results.write_scores(agent, folder, {**scores, "baselines": found})


@contextlib.contextmanager
def player_opened(
    agent: Agent,
    player: Player,
    samples: Sequence[results.Sample],
    folder: Path,
    arguments: argparse.Namespace,
    settings: Settings,
) -> Iterator[Callable[[results.Sample], Awaitable[Record]]]:
    """Yield a function that plays an episode and returns its record. The agent's services and the
    player's server run until the block ends.
    """
    commonest = commonest_answer([sample.task for sample in samples if sample.number == 0])
    with opened(agent, player, folder, arguments, settings) as (environment, endpoint):

        async def play_one(sample: results.Sample) -> Record:
            scored = await play_sample(
                sample.task, player, endpoint, environment, settings, commonest
            )
            return results.recorded(sample, scored, environment).line()

        yield play_one


def report(agent: Agent, scores: dict[str, Any], folder: Path) -> int:
    """Print the table and the folder; say what has no score.

    Returns the exit code.
    """
    report_of(agent, scores).show()
    unscored = scores["overall"]["unscored"]
    if unscored:
        count = sum(unscored.values())
        print(
            f"evaluate: {count} episodes have no score; the same command tries them again",
            file=sys.stderr,
        )
        shown: dict[str, str] = {}
        for record in results.read_episodes(folder):
            if cause := record.get("unscored"):
                shown.setdefault(cause, record.get("detail") or cause)
        for detail in shown.values():
            print(f"  {detail}", file=sys.stderr)
    print(folder)
    return 1 if unscored else 0


def main(argv: Sequence[str] | None = None) -> int:
    collect_rarely()
    stop_in_order()

    def body() -> int:
        settings = load_settings()
        return evaluate(*parse_arguments(argv, settings), settings)

    return run_command("evaluate", body, afterwards="the same command goes on from here")


if __name__ == "__main__":
    sys.exit(main())
