"""Fit the map from a reward model's raw scores to [0, 1], and write the file that the judge reads.

    .venv/bin/python utils/reward_scale.py --pairs pairs.jsonl --output outputs/reward_scale.json   # asks REWARD_MODEL_URL
    .venv/bin/python utils/reward_scale.py --scores scores.jsonl --column raw --output outputs/reward_scale.json

Scores come from the endpoint (JSONL rows {prompt, response}, answered by {score}) or from a column
of any JSONL, such as episodes.jsonl. The map spreads them evenly. Set REWARD_SCALE to OUT.json to
use it. With --pairs there is OUT.scores.jsonl too, and the same command resumes a killed run.
Unscored rows are counted and left out. Exit codes: 0 done, 1 the endpoint failed, 2 wrong usage,
130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy

from common.command import UsageError, new_parser, positive, run_command
from common.files import FileError, file_digest, refuse_existing
from common.journal import MISSING, Failed, RunError, open_journal, run_all
from common.jsonl import JsonlRows, read_jsonl, write_jsonl
from common.llm import LLMError, Usage
from common.llm.endpoint import without_secrets
from common.settings import load_settings
from scoring.reward_model_judge import RewardModelJudge
from scoring.scale import QuantileScale
from sql_agent.curation.prompts import digest

PROGRAM = "reward_scale"
POINTS = 21  # of the map: every five percent
LARGEST = 1e100  # a score beyond it is an endpoint's fault
FEWEST = 100  # scores. With fewer, five percent are less than five scores


def fit(scores: Sequence[float]) -> QuantileScale:
    """Return POINTS evenly spaced quantiles of the scores.

    Equal scores become one point in the middle of their shares, as in rank statistics. Raises
    UsageError: fewer than two different scores, or some of an unusable size.
    """
    huge = [score for score in scores if abs(score) > LARGEST]
    if huge:
        seen = f"{len(huge)} scores are beyond {LARGEST:g}, such as {huge[0]:g}"
        raise UsageError(f"{seen}; is the endpoint broken?")
    if len(set(scores)) < 2:
        seen = f"all {len(scores)} are {scores[0]:g}" if scores else "there are none"
        raise UsageError(f"a map needs scores that differ, and {seen}")
    shares = numpy.linspace(0, 1, POINTS)
    raw, place = numpy.unique(numpy.quantile(scores, shares), return_inverse=True)
    unit = numpy.bincount(place, shares) / numpy.bincount(place)
    return QuantileScale(raw=raw.tolist(), unit=unit.tolist())


def read_scores(path: Path, column: str) -> tuple[list[float], int]:
    """Return the numbers of a column (`a.b`: b inside a), and the number of rows without a score.

    Raises FileError: a row lacks the column, or holds something that is not a finite number.
    """
    scores = []
    unscored = 0
    for number, row in read_jsonl(path):
        value: Any = row
        for name in column.split("."):
            value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
        is_unscored = bool(row.get("unscored")) or row.get("status") == "failed"
        if value is None or (value is MISSING and is_unscored):
            unscored += 1
        elif isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            seen = f"{column} is {value!r}"
            if value is MISSING:
                seen = f"no column {column}; it has {', '.join(row)}"
            raise FileError(f"{path}, line {number}: {seen}; expected a number (give --column)")
        else:
            scores.append(float(value))
    return scores, unscored


def ask_endpoint(options: argparse.Namespace) -> list[float]:
    """Return the raw score of every pair, in order. A journal keeps them until the end.

    Raises UsageError: no endpoint is set. Raises RunError: some pairs have no score.
    """
    url = options.url or load_settings().reward_model_url
    if not url:
        raise UsageError("no endpoint: set REWARD_MODEL_URL (environment or .env), or give --url")
    pairs = JsonlRows(options.pairs, texts=("prompt", "response"))
    model = RewardModelJudge(url, options.timeout)
    spent = Usage()
    where = {"program": PROGRAM, "url": without_secrets(url)}
    fingerprint = {**where, "input": file_digest(options.pairs)}
    kept = options.output.with_suffix(".scores.jsonl")

    with open_journal(options.output, fingerprint, force=options.force, others=[kept]) as journal:
        everything = run_all(
            pairs,
            key=lambda row: digest(f"{row['prompt']}\0{row['response']}"),
            work=lambda row: model.raw_score(row["prompt"], row["response"], spent),
            journal=journal,
            concurrency=options.concurrency,
            title=PROGRAM,
            failures=LLMError,
        )
        scores = list(asyncio.run(everything))
        failed = [score for score in scores if isinstance(score, Failed)]
        if failed:
            seen = f"{len(failed):,} of {len(scores):,} pairs have no score"
            raise RunError(f"{seen}, the first one: {failed[0].reason}")
        rows = [{"row": number, "raw": score} for number, score in enumerate(scores)]
        write_jsonl(kept, rows, force=True)
        journal.remove()
    return scores


def fit_scale(options: argparse.Namespace) -> None:
    if options.pairs:
        scores = ask_endpoint(options)
        unscored = 0
    else:
        refuse_existing(options.output, options.force)
        scores, unscored = read_scores(options.scores, options.column)
    scale = fit(scores)
    write_jsonl(options.output, [scale.model_dump()], force=True)
    print(f"{len(scores):,} scores, {unscored:,} rows not scored")
    for name, share in (("least", 0), ("25 %", 0.25), ("median", 0.5), ("75 %", 0.75), ("most", 1)):
        raw = float(numpy.quantile(scores, share))
        print(f"{name:<8}{raw:>12.4g} becomes {scale.apply(raw):.4g}")
    if len(scores) < FEWEST:
        few = f"only {len(scores)} scores; with fewer than {FEWEST} the map is rough"
        print(f"{PROGRAM}: {few}", file=sys.stderr)
    print(f"to use it, set  REWARD_SCALE={options.output.resolve()}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    what = "JSONL {prompt, response} to send to the endpoint"
    source.add_argument("--pairs", type=Path, metavar="FILE", help=what)
    what = "JSONL with a column of raw scores"
    source.add_argument("--scores", type=Path, metavar="FILE", help=what)
    add = parser.add_argument
    add("--column", default="score", help="of --scores; a.b is b inside a (default: score)")
    add("--url", help="the reward model's address (default: REWARD_MODEL_URL)")
    add("--output", type=Path, required=True, metavar="OUT.json", help="the map's file")
    limit = "seconds for a pair, retries included (60)"
    add("--timeout", type=positive(float), default=60.0, metavar="S", help=limit)
    add("--concurrency", type=positive(int), default=8, metavar="N", help="requests at once (8)")
    add("--force", action="store_true", help="replace existing outputs")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    afterwards = "what was scored is kept: give the same command again to go on"
    return run_command(PROGRAM, lambda: fit_scale(options), afterwards if options.pairs else "")


if __name__ == "__main__":
    sys.exit(main())
