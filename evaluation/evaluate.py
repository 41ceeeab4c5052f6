"""Evaluate a model on a file of tasks, with the agent, the environment and the scoring of training.

    .venv/bin/python -m evaluation.evaluate sql --model sql_agent/tiny_model               # starts vLLM itself
    .venv/bin/python -m evaluation.evaluate sql --model runs/NAME --n 300 --k 4            # a run's latest checkpoint
    .venv/bin/python -m evaluation.evaluate sql --model NAME --base-url http://127.0.0.1:8000/v1
    .venv/bin/python -m evaluation.evaluate sql --model anthropic/NAME                     # any provider of litellm
    .venv/bin/python -m evaluation.evaluate sql --gold                                     # must be 100
    .venv/bin/python -m evaluation.evaluate sql --baseline commonest                       # a floor, without a model

Writes `scores.json`, `table.md` and `episodes.jsonl` into --out (docs/evaluate-and-serve.md). The
same command goes on where an interrupted one stopped. Exit codes: 0 done, 1 failed or some episodes
are unscored, 2 wrong usage, 130 interrupted.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from common.command import new_parser, positive, run_command
from common.files import file_digest
from common.journal import Journal, open_journal, run_all
from common.settings import Settings, load_settings
from common.startup import collect_rarely
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent, Environment, Record
from episodes.episode import AgentError, Episode, Task
from episodes.play_and_score import own_code, play, tasks_of
from episodes.policy import ChatPolicy, Endpoint
from episodes.record import as_json, record_of
from episodes.row_files import refuse_twice
from episodes.turns import turns_of, with_turns
from evaluation import results
from evaluation.players import (
    MODELS,
    SERVED_ALONE,
    Player,
    add_flags,
    model_player,
    opened,
    reply_tokens,
)
from evaluation.results import Sample
from evaluation.tables import report_of

PlayOne = Callable[[Sample], Awaitable[Record]]
NO_SCORE = "the agent's rewards have a total and no score"
SILENT = "silent"  # the baseline that every agent has


class Unscored(Exception):
    """An episode without a score."""


def parse_arguments(
    argv: Sequence[str] | None, settings: Settings
) -> tuple[Agent, argparse.Namespace]:
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    player = parser.add_argument_group("who plays")
    who = player.add_mutually_exclusive_group(required=True)
    who.add_argument("--model", metavar="MODEL", help=MODELS)
    who.add_argument("--gold", action="store_true", help="the gold episodes: must be 100")
    baseline = f"a player without a model: {SILENT}, or one of the agent's own"
    who.add_argument("--baseline", metavar="NAME", help=baseline)
    add = parser.add_argument_group("tasks").add_argument
    add("--data", type=Path, metavar="FILE", help="default: the agent's test file")
    sample = "a sample of N tasks, each task type with its share; default: all"
    add("--n", type=positive(int), metavar="N", help=sample)
    add("--k", type=positive(int), default=1, help="episodes of each task; default: 1")
    draws = "draws the sample and budgets of turns; default: 0"
    add("--seed", type=int, default=0, metavar="SEED", help=draws)
    add = parser.add_argument_group("run").add_argument
    where = "folder of the results; default: one in outputs/evaluations, named by the flags"
    add("--out", type=Path, metavar="DIR", help=where)
    add("--force", action="store_true", help="discard what is in --out")
    most = "episodes at a time; default: 32"
    add("--concurrency", type=positive(int), default=32, metavar="N", help=most)
    add_flags(parser, settings)
    arguments = parser.parse_args(argv)
    if arguments.k > 1 and (not arguments.model or arguments.temperature == 0):
        parser.error(f"--k {arguments.k}: every episode of a task would be the same; leave --k out")
    if arguments.base_url and not arguments.model:
        parser.error("--base-url needs --model, the name the endpoint serves the model under")
    return registry.completed(arguments, "test"), arguments


def configuration(
    agent: Agent,
    arguments: argparse.Namespace,
    player: Player,
    environment: Environment,
    tasks: int,
) -> dict[str, Any]:
    """Return all that scores depend on. An evaluation with an equal configuration may continue."""
    sampling = {
        "temperature": arguments.temperature,
        "top_p": 1.0,
        "max_tokens": arguments.max_tokens,
    }
    found = {
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
    }
    for name in SERVED_ALONE:
        if player.kind == "served" and getattr(arguments, name):
            found[name] = getattr(arguments, name)
    # As it is read back, where a tuple is a list
    return {**found, **json.loads(as_json(environment.description()))}


def default_folder(config: dict[str, Any]) -> Path:
    """Return a folder name that only this configuration leads to."""
    passed = ("/", "actor", "huggingface", "checkpoints")
    parts = [part for part in Path(config["model"]).parts if part not in passed]
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    return results.FOLDER / "-".join([config["agent"], *parts[-2:], digest])


async def scripted_episode(
    environment: Environment, player: Player, task: Task, commonest: str = ""
) -> Episode:
    """Return the gold episode or a baseline's. Raises AgentError: there is none."""
    if player.kind == "gold":
        gold = await environment.gold(task)
        if gold is None:
            raise AgentError(f"task {task.id} has no gold episode; --gold needs one of every task")
        return gold
    silent = Episode(messages=[], stop_reason="no_answer", turns=1)
    known = {SILENT: silent, **environment.baselines(task, commonest)}
    if player.name not in known:
        raise AgentError(f"--baseline {player.name!r}: expected one of {', '.join(known)}")
    return known[player.name]


async def play_all(
    samples: Sequence[Sample], play_one: PlayOne, journal: Journal, concurrency: int
) -> dict[str, Record]:
    """Play what the journal lacks, once more what stayed unscored, and return what still is.
    Raises RunError: nothing was scored before, and many fail one after the other.
    """
    unscored: dict[str, Record] = {}

    async def work(sample: Sample) -> Record:
        record = await play_one(sample)
        if record["score"] is None:
            unscored[sample.key] = record
            raise Unscored(record["detail"] or record["unscored"] or NO_SCORE)
        unscored.pop(sample.key, None)
        return record

    key = attrgetter("key")
    run = partial(run_all, failures=Unscored, concurrency=concurrency)
    # What failed before fails again, one after the other, and proves nothing
    goes_on = any(sample.key in journal for sample in samples)
    await run(samples, key, work, journal, title="episodes", bounded=not goes_on)
    if unscored:
        again = [sample for sample in samples if sample.key in unscored]
        await run(again, key, work, journal, title="unscored episodes again", bounded=False)
    return unscored


def evaluate(agent: Agent, arguments: argparse.Namespace, settings: Settings) -> int:
    """Play, score and write. Returns the exit code."""
    if arguments.gold:
        player = Player("gold", "gold")
    elif arguments.baseline is not None:
        player = Player("baseline", arguments.baseline)
    else:
        player = model_player(agent, arguments.model, arguments.base_url, settings)
    arguments.max_tokens = arguments.max_tokens or reply_tokens(agent, player, arguments.thinking)
    seeded = settings.under({"turns_seed": arguments.seed})
    settings = with_turns(agent, seeded, arguments.max_turns)
    arguments.max_turns = settings.max_turns
    if settings.min_turns != settings.max_turns:
        arguments.max_turns = f"{settings.min_turns}-{settings.max_turns}"
    every = agent.rows(arguments.data)
    rows = results.sample_rows(every, arguments.n, arguments.seed)
    own = registry.own_options(agent, arguments)
    notes = agent.check({"evaluation": rows}, settings, own)
    tasks = tasks_of(agent, rows, settings)
    refuse_twice((task.id for task in tasks), arguments.data)
    with contextlib.closing(agent.open(settings, own, evaluating=True)) as environment:
        commonest = ""
        if player.kind == "baseline":
            # Before a folder is made
            commonest = commonest_answer(tasks_of(agent, every, settings))
            asyncio.run(scripted_episode(environment, player, tasks[0]))
        config = configuration(agent, arguments, player, environment, len(rows))
    for note in notes:
        print(note, file=sys.stderr)
    samples = []
    for task in tasks:
        samples += [Sample(task, number) for number in range(arguments.k)]
    folder: Path = arguments.out or default_folder(config)
    if not arguments.force and results.finished(agent, folder, config):
        print(f"{folder} has these scores already; --force plays it again", file=sys.stderr)
        scores = results.read_scores(folder)
    else:
        output = folder / results.EPISODES
        others = [folder / results.SCORES, folder / results.TABLE]
        with open_journal(output, config, force=arguments.force, others=others) as journal:
            left: dict[str, Record] = {}
            if any(sample.key not in journal for sample in samples):
                with (
                    opened(agent, player, folder, arguments, settings) as (environment, endpoint),
                    results.traceback_kept(folder),
                ):
                    play_one = player_of(environment, player, endpoint, commonest, settings)
                    left = asyncio.run(play_all(samples, play_one, journal, arguments.concurrency))
            records = [left.get(sample.key) or journal.get(sample.key) for sample in samples]
            scores = results.write_results(agent, folder, config, records)
            if not left:
                journal.remove()
    report(agent, scores, folder)
    return 1 if scores["overall"]["unscored"] else 0


def commonest_answer(tasks: Sequence[Task]) -> str:
    """Return the answer of most of a file's tasks, "" where none has one."""
    counts = Counter(task.reference for task in tasks if task.reference)
    return min(counts, key=lambda answer: (-counts[answer], answer), default="")


def player_of(
    environment: Environment,
    player: Player,
    endpoint: Endpoint | None,
    commonest: str,
    settings: Settings,
) -> PlayOne:
    """Return a function that plays an episode."""

    async def play_one(sample: Sample) -> Record:
        task = sample.task
        if endpoint is not None:
            policy = ChatPolicy(endpoint, turns_of(task, settings))
            episode = environment.play(task, policy)
        else:
            policy = None
            episode = scripted_episode(environment, player, task, commonest)
        scored = await play(environment, task, episode, policy, settings.episode_timeout)
        with own_code(environment, "record", f"task {task.id}"):
            own = environment.record(task, scored.episode)
            return record_of(scored, own, sample.number).line()

    return play_one


def report(agent: Agent, scores: dict[str, Any], folder: Path) -> None:
    """Print the table and the folder. Say what has no score."""
    report_of(agent, scores).show()
    if unscored := scores["overall"]["unscored"]:
        lost = f"{sum(unscored.values())} episodes have no score"
        print(f"evaluate: {lost}; the same command tries them again", file=sys.stderr)
        shown: dict[str, str] = {}
        for record in results.read_episodes(folder):
            if record["score"] is None:
                cause = record["unscored"] or NO_SCORE
                shown.setdefault(cause, record.get("detail") or cause)
        for detail in shown.values():
            print(f"  {detail}", file=sys.stderr)
    print(folder)


def main(argv: Sequence[str] | None = None) -> int:
    collect_rarely()
    stop_in_order()

    def body() -> int:
        settings = load_settings()
        return evaluate(*parse_arguments(argv, settings), settings)

    return run_command("evaluate", body, afterwards="the same command goes on from here")


if __name__ == "__main__":
    sys.exit(main())
