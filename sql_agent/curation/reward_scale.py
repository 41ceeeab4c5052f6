"""Fit the map from a reward model's raw scores to [0, 1], show it, and write the file that the
judge reads.

    python utils/reward_scale.py --pairs pairs.jsonl --output outputs/reward_scale.json      # asks REWARD_MODEL_URL
    python utils/reward_scale.py --run runs/NAME --column terms.judge --output outputs/reward_scale.json
    python utils/reward_scale.py --scores scores.jsonl --kind logistic --output outputs/reward_scale.json

Raw scores come from the endpoint (`--pairs`: JSONL rows {prompt, response}, each sent by POST,
{score} comes back), from a run's episodes.jsonl, or from a column of any JSONL. `--kind quantile`
spreads them evenly over [0, 1]; `--kind logistic` keeps their shape and bends only the ends.
Written: OUT.json, OUT.png (before, map, after) and, with --pairs, OUT.scores.jsonl. Set
REWARD_SCALE to OUT.json to use it. Rows without a score are counted and left out: not scored is not
0. A killed --pairs run goes on when the same command is given again. Exit codes: 0 done, 1 the
endpoint failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from common.command import UsageError, new_parser, positive, run_command
from common.files import FileError, file_digest, refuse_existing
from common.journal import MISSING, Failed, RunError, open_journal, run_all
from common.jsonl import JsonlRows, read_jsonl, write_jsonl
from common.settings import load_settings

PROGRAM = "reward_scale"


def read_scores(path: Path, column: str) -> tuple[list[float], int]:
    """Return the numbers of a column (`a.b`: b inside a), and how many rows have null there, or are
    episodes without a score.

    Raises:
        FileError: a row lacks the column, or holds something that is not a finite number.
    """
    scores = []
    unscored = 0
    for number, row in read_jsonl(path):
        value: Any = row
        for name in column.split("."):
            value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
        if value is None or (value is MISSING and _has_no_score(row)):
            unscored += 1
        elif isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            seen = (
                f"no column {column}; it has {', '.join(row)}"
                if value is MISSING
                else f"{column} is {value!r}"
            )
            raise FileError(f"{path}, line {number}: {seen}; expected a number (give --column)")
        else:
            scores.append(float(value))
    return scores, unscored


def _has_no_score(row: dict[str, Any]) -> bool:
    """Return whether a row is an episode that failed or could not be scored."""
    return bool(row.get("unscored")) or row.get("status") == "failed"


def ask_endpoint(arguments: argparse.Namespace) -> list[float]:
    """Return the raw score of every pair, in order; kept in a journal until OUT.scores.jsonl is
    written.

    Raises:
        UsageError: no endpoint is set; RunError: some pairs have no score.
    """
    from common.llm import LLMError, Usage
    from common.llm.endpoint import without_secrets
    from scoring.reward_model_judge import RewardModelJudge

    url = arguments.url or load_settings().reward_model_url
    if not url:
        raise UsageError("no endpoint: set REWARD_MODEL_URL (environment or .env), or give --url")
    pairs = JsonlRows(arguments.pairs, texts=("prompt", "response"))
    model = RewardModelJudge(url, arguments.timeout)
    spent = Usage()
    fingerprint = {
        "program": PROGRAM,
        "url": without_secrets(url),
        "input": file_digest(arguments.pairs),
    }
    others = [arguments.output.with_suffix(suffix) for suffix in (".png", ".scores.jsonl")]
    with open_journal(
        arguments.output, fingerprint, force=arguments.force, others=others
    ) as journal:
        everything = run_all(
            pairs,
            key=lambda row: hashlib.sha256(
                f"{row['prompt']}\0{row['response']}".encode()
            ).hexdigest()[:32],
            work=lambda row: model.raw_score(row["prompt"], row["response"], spent),
            journal=journal,
            concurrency=arguments.concurrency,
            title=PROGRAM,
            failures=LLMError,
        )
        scores = list(asyncio.run(everything))
        failed = [score for score in scores if isinstance(score, Failed)]
        if failed:
            raise RunError(
                f"{len(failed):,} of {len(scores):,} pairs have "
                f"no score, the first one: {failed[0].reason}"
            )
        rows = ({"row": number, "raw": score} for number, score in enumerate(scores))
        write_jsonl(arguments.output.with_suffix(".scores.jsonl"), rows, force=True)
        journal.remove()
    return scores


def fit_scale(arguments: argparse.Namespace) -> None:
    from sql_agent.curation.scale_fit import FEWEST, draw, fit, summary

    output = arguments.output
    picture = arguments.output.with_suffix(".png")
    if arguments.pairs:
        scores = ask_endpoint(arguments)
        unscored = 0
        source = str(arguments.pairs)
    else:
        for file in (output, picture):
            refuse_existing(file, arguments.force)
        path = arguments.run / "episodes.jsonl" if arguments.run else arguments.scores
        column = arguments.column or ("reward" if arguments.run else "score")
        scores, unscored = read_scores(path, column)
        source = f"{path}, {column}"
    scale = fit(scores, arguments.kind)
    draw(scores, scale, source, picture)
    write_jsonl(output, [scale.model_dump()], force=True)
    print(
        f"{len(scores):,} scores of {source}, {unscored:,} "
        f"rows not scored\n{'':<24}{'before':>12}{'after':>12}"
    )
    after = summary([scale.apply(score) for score in scores])
    for name, before in summary(scores).items():
        print(f"{name:<24}{before:>12.4g}{after[name]:>12.4g}")
    if len(scores) < FEWEST:
        print(
            f"{PROGRAM}: only {len(scores)} scores; with fewer than {FEWEST} the map is rough",
            file=sys.stderr,
        )
    print(f"map: {output}, picture: {picture}\nto use it, set  REWARD_SCALE={output.resolve()}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add = parser.add_argument
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help="JSONL {prompt, response} to send to the endpoint",
    )
    source.add_argument(
        "--run", type=Path, metavar="FOLDER", help="a run's folder: its episodes.jsonl"
    )
    source.add_argument(
        "--scores", type=Path, metavar="FILE", help="JSONL with a column of raw scores"
    )
    add("--column", help="of the scores; a.b is b inside a (default: score, with --run: reward)")
    add("--url", help="the reward model's address (default: REWARD_MODEL_URL)")
    add(
        "--kind",
        choices=("quantile", "logistic"),
        default="quantile",
        help="the map (default: quantile)",
    )
    add("--output", type=Path, required=True, metavar="OUT.json", help="the map's file")
    add(
        "--timeout",
        type=positive(float),
        default=60.0,
        metavar="S",
        help="seconds for a pair, retries included (60)",
    )
    add("--concurrency", type=positive(int), default=8, metavar="N", help="requests at once (8)")
    add("--force", action="store_true", help="replace existing outputs")
    arguments = parser.parse_args(argv)
    if arguments.column and arguments.pairs:
        parser.error("--column belongs to --run and --scores; --pairs asks the endpoint")
    if arguments.output.suffix != ".json":
        parser.error(f"--output {arguments.output}: expected a name that ends in .json")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    afterwards = (
        "what was scored is kept: give the same command again to go on" if arguments.pairs else ""
    )
    return run_command(PROGRAM, lambda: fit_scale(arguments), afterwards)


if __name__ == "__main__":
    sys.exit(main())
