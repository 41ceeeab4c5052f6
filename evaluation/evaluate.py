"""Evaluate a model on a file of questions, with the agent, the tool and the scoring of training.

    .venv/bin/python -m evaluation.evaluate --model sql_agent/tiny_model                   # starts vLLM itself
    .venv/bin/python -m evaluation.evaluate --model runs/NAME --n 300 --k 4                # a run's latest checkpoint
    .venv/bin/python -m evaluation.evaluate --model NAME --base-url http://127.0.0.1:8000/v1
    .venv/bin/python -m evaluation.evaluate --model anthropic/NAME                         # any provider of litellm
    .venv/bin/python -m evaluation.evaluate --gold                                         # must be 100
    .venv/bin/python -m evaluation.evaluate --baseline rule                                # the floor, without a model

Writes `scores.json`, `table.md` and `episodes.jsonl` into --out; docs/evaluation.md says what is in them. The same
command goes on where an interrupted one stopped. Exit codes: 0 done, 1 failed or some episodes are unscored, 2 wrong
usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.settings import ROOT, Settings, SettingsError, load_settings
from common.startup import collect_rarely

if TYPE_CHECKING:
    from common.journal import Journal
    from episodes.openai_agents import Endpoint
    from evaluation.jobs import Job, Play, Referee
    from evaluation.policies import Policy
    from tools.sql.query import QueryTool

DEFAULT_FOLDER = ROOT / "outputs" / "evaluations"


def parse_arguments(argv: Sequence[str] | None, settings: Settings) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evaluation.evaluate", description=__doc__.splitlines()[0])
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument(
        "--model", help="model folder, run folder, checkpoint, hub id, litellm name, or name at --base-url"
    )
    who.add_argument("--gold", action="store_true", help="no model: run the gold SQL, give the gold answer")
    who.add_argument("--baseline", choices=("rule",), help="no model: an agent made of one template")
    parser.add_argument("--base-url", help="OpenAI-compatible endpoint ending in /v1; its key is OPENAI_API_KEY")
    parser.add_argument("--data", type=Path, default=ROOT / "data" / "test.parquet", help="default: data/test.parquet")
    parser.add_argument("--n", type=int, help="questions, a sample with every task type's share; default: all")
    parser.add_argument("--k", type=int, default=1, help="episodes a question; default: 1")
    parser.add_argument(
        "--temperature",
        type=float,
        default=settings.temperature,
        help="default: TEMPERATURE, as in training; 0: greedy",
    )
    parser.add_argument("--max-tokens", type=int, default=settings.max_tokens, help="of one reply; default: as trained")
    parser.add_argument("--max-turns", type=int, default=settings.max_turns, help="default: MAX_TURNS")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of questions and of the intervals")
    parser.add_argument("--out", type=Path, help="folder; default: outputs/evaluations/ and a name made of the flags")
    parser.add_argument("--concurrency", type=int, default=32, help="episodes at a time; default: 32")
    parser.add_argument("--force", action="store_true", help="throw away what is in --out")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="of the vLLM started here")
    parser.add_argument("--n-gpus", type=int, default=1, help="GPUs the vLLM started here is split over")
    arguments = parser.parse_args(argv)
    for name in ("n", "k", "max_tokens", "max_turns", "concurrency", "n_gpus"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} is {value}; it must be at least 1")
    if not 0 <= arguments.temperature <= 2:
        parser.error(f"--temperature is {arguments.temperature}; it must lie between 0 and 2")
    if arguments.k > 1 and (not arguments.model or arguments.temperature == 0):
        parser.error(f"--k {arguments.k}: every episode of a question would be the same; leave --k out")
    if arguments.base_url and not arguments.model:
        parser.error("--base-url needs --model, the name the endpoint serves the model under")
    return arguments


def choose_policy(arguments: argparse.Namespace, settings: Settings) -> Policy:
    """The policy the flags name; of a run, its latest checkpoint."""
    from evaluation.policies import Policy, find_policy
    from training.serve import servable

    if not arguments.model:
        return Policy("gold", "gold") if arguments.gold else Policy("rule", "rule")
    policy = find_policy(arguments.model, arguments.base_url, settings)
    return Policy("served", servable(policy.name)) if policy.kind == "served" else policy


def reply_tokens(policy: Policy) -> int:
    """Tokens of one reply: those of the preset whose context the model has, as in training."""
    from sql_agent.config import ROLLOUT, choose

    small, large = choose("full", "cpu", 1), choose("full", "cuda", 1)
    with contextlib.suppress(OSError):
        config = json.loads((Path(policy.name) / "config.json").read_text(encoding="utf-8"))
        if config.get("max_position_embeddings", 0) <= small.overrides[f"{ROLLOUT}.max_model_len"]:
            return small.max_tokens
    return large.max_tokens


def configuration(
    arguments: argparse.Namespace, policy: Policy, referee: Referee, settings: Settings, questions: int
) -> dict[str, Any]:
    """Everything the scores depend on, as JSON values; two evaluations with the same may be continued."""
    from sqlalchemy.engine import make_url

    from common.jsonl import file_digest
    from sql_agent.prompts import PROMPT_VERSION

    sampling = {"temperature": arguments.temperature, "top_p": 1.0, "max_tokens": arguments.max_tokens}
    return {
        **policy.fingerprint(),
        "data": {"file": arguments.data.name, "sha256": file_digest(arguments.data), "questions": questions},
        "k": arguments.k,
        "seed": arguments.seed,
        "sampling": sampling if policy.samples else None,
        "max_turns": arguments.max_turns,
        "prompt_version": PROMPT_VERSION,
        "tools": settings.database_tools,
        "database": make_url(settings.database_url).render_as_string(hide_password=True),
        "judge": settings.teacher_model if referee.judge.name == "llm" else referee.judge.name,
        "terms": dict(referee.rubric.weights),
    }


def default_folder(config: dict[str, Any]) -> Path:
    """A folder that the same flags, and no others, lead to."""
    parts = [part for part in Path(config["model"]).parts if part not in ("/", "actor", "huggingface", "checkpoints")]
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    return DEFAULT_FOLDER / "-".join([*parts[-2:], digest])


@contextlib.contextmanager
def open_policy(
    policy: Policy, arguments: argparse.Namespace, settings: Settings, tool: QueryTool, folder: Path
) -> Iterator[Play]:
    """What plays the episodes; a model that needs a server has one until the end."""
    from evaluation.policies import with_model, without_model
    from tools.sql.schema_tools import SchemaTools

    if not policy.samples:
        yield without_model(policy.kind, tool)
        return
    schema = SchemaTools(tool) if settings.database_tools == "schema" else None
    with open_endpoint(policy, arguments, settings, folder / "vllm.log") as endpoint:
        yield with_model(endpoint, arguments.max_turns, tool, schema)


@contextlib.contextmanager
def open_endpoint(policy: Policy, arguments: argparse.Namespace, settings: Settings, log: Path) -> Iterator[Endpoint]:
    """Where the model answers, and how it is sampled; of a folder or hub id a server started here."""
    from episodes.litellm_client import BASE_URL, litellm_client
    from episodes.openai_agents import Endpoint
    from training.serve import serve

    sampling = {"temperature": arguments.temperature, "max_tokens": arguments.max_tokens}
    if policy.kind == "litellm":
        yield Endpoint(BASE_URL, policy.name, **sampling, http_client=litellm_client())
    elif policy.kind == "endpoint":
        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
        yield Endpoint(str(policy.base_url), policy.name, key, **sampling)
    else:
        print(f"starting vLLM for {policy.name}, log in {log}", file=sys.stderr, flush=True)
        with serve(policy.name, log, arguments.device, n_gpus=arguments.n_gpus) as server:
            # No seed of its own for each episode: vLLM's CPU worker dies of one when a prompt is read in two parts.
            yield Endpoint(server.base_url, server.name, **sampling, extra={"top_k": -1})


async def play_all(
    jobs: list[Job], play: Play, referee: Referee, journal: Journal, concurrency: int
) -> dict[str, dict[str, Any]]:
    """Play what the journal does not hold yet, once more what stayed unscored; return the records still unscored."""
    from common.journal import run_all
    from evaluation.jobs import Unscored

    unscored: dict[str, dict[str, Any]] = {}

    async def work(job: Job) -> dict[str, Any]:
        try:
            record = await referee.play(job, play)
        except Unscored as problem:
            unscored[job.key] = problem.record
            raise
        unscored.pop(job.key, None)
        return record

    for title in ("episodes", "unscored episodes again"):
        outcome = await run_all(
            [job for job in jobs if title == "episodes" or job.key in unscored],
            key=lambda job: job.key,
            work=work,
            journal=journal,
            concurrency=concurrency,
            title=title,
            failures=Unscored,
        )
        if not outcome.failed:
            break
    return unscored


def evaluate(arguments: argparse.Namespace, settings: Settings) -> int:
    """Play, score and write; returns the exit code."""
    from common.journal import open_journal
    from data.load import load_rows
    from evaluation.jobs import Referee, jobs_of, sample_rows
    from evaluation.results import EPISODES, SCORES, TABLE, finished, read_scores, write_results
    from tools.sql.query import QueryTool

    policy = choose_policy(arguments, settings)
    arguments.max_tokens = arguments.max_tokens or reply_tokens(policy)
    jobs = jobs_of(sample_rows(load_rows(arguments.data), arguments.n, arguments.seed), arguments.k)
    tool = QueryTool(settings.database_url)
    tool.database()  # a database that cannot be used is noticed before a model is loaded
    with Referee(settings) as referee:
        config = configuration(arguments, policy, referee, settings, len(jobs) // arguments.k)
        folder: Path = arguments.out or default_folder(config)
        if not arguments.force and finished(folder, config):
            print(f"{folder} has these scores already; --force plays all episodes again", file=sys.stderr)
            return report(read_scores(folder), folder)
        folder.mkdir(parents=True, exist_ok=True)
        with open_journal(
            folder / EPISODES, config, force=arguments.force, others=[folder / SCORES, folder / TABLE]
        ) as journal:
            unscored: dict[str, Any] = {}
            if any(job.key not in journal for job in jobs):
                referee.check()
                with open_policy(policy, arguments, settings, tool, folder) as play:
                    unscored = asyncio.run(play_all(jobs, play, referee, journal, arguments.concurrency))
            records = [unscored[job.key] if job.key in unscored else journal.get(job.key) for job in jobs]
            scores = write_results(folder, config, records)
            if not unscored:
                journal.remove()
    return report(scores, folder)


def report(scores: dict[str, Any], folder: Path) -> int:
    """Print the table and the folder; say what has no score. Returns the exit code."""
    from evaluation.tables import show

    show(scores)
    unscored = scores["overall"]["unscored"]
    if unscored:
        causes = ", ".join(f"{cause} {count}" for cause, count in unscored.items())
        print(
            f"evaluate: {sum(unscored.values())} episodes have no score and are in no number above ({causes}); "
            "the same command tries them again",
            file=sys.stderr,
        )
    print(folder)
    return 1 if unscored else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    collect_rarely()
    try:
        settings = load_settings()
    except SettingsError as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 2
    arguments = parse_arguments(argv, settings)
    from common.journal import JournalError, RunError
    from common.jsonl import FileError
    from data.load import DataError
    from evaluation.jobs import JudgeError
    from evaluation.policies import PolicyError
    from evaluation.results import ResultsError
    from sql_agent.task import TaskError
    from tools.sql.database import DatabaseError
    from training.plan import ConfigError
    from training.serve import ServeError

    wrong_usage = (PolicyError, ResultsError, SettingsError, DataError, TaskError, ConfigError, FileError, JournalError)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return evaluate(arguments, settings)
    except wrong_usage as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 2
    except (JudgeError, ServeError, DatabaseError, RunError) as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("evaluate: interrupted; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
