"""Measure a model of the diagnosis agent's simulator against the records of its cases, and write
JSON and a table.

    python utils/simulator_quality.py --simulator served --simulator-model models/world --output outputs/world.json
    python utils/simulator_quality.py --simulator llm --output outputs/world.json       # SIMULATOR_MODEL, _BASE_URL

Every recorded examination of a case is asked for once as a single result, after the recorded ones
before it, and once in a chain, after the model's own. Nothing is taken from the cache or put there.
Similarity (0 to 5, as DiagGym has it) and consistency are judged by TEACHER_MODEL where it is set,
else by rules that know no medicine: the two cannot be compared. docs/diagnosis.md says what the
numbers mean. Exit codes: 0 done, 1 the simulator or the judge failed, 2 wrong usage, 130
interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.command import Failure, UsageError, new_parser, number, positive, run_command
from common.files import refuse_existing, replacing
from common.settings import Settings, load_settings
from common.terminal import gathered
from diagnosis_agent.agent import AGENT
from diagnosis_agent.llm_simulator import LLMSimulator, simulator_model
from diagnosis_agent.simulator import Result
from diagnosis_agent.task import DiagnosisTask, task_of
from diagnosis_agent.world_model import in_order
from diagnosis_agent.world_quality import WORDS, Made, case_of, numbers, rules, variety
from scoring.judge import choose_judge
from training.serve import serve_environment

PROGRAM = "simulator_quality"
MOST = 5.0  # of DiagGym's similarity
ROWS = {
    "results": "results",
    "withheld": "withheld",
    "similarity": "similarity (0 to 5)",
    "consistency": "consistency, %",
    "wasserstein": "Wasserstein distance, in the records' deviations",
    "floor": "the same between halves of the records",
    "spread": "spread over the records'",
    "variety": "different texts over the records'",
}


async def make(simulator: LLMSimulator, task: DiagnosisTask, chain: bool) -> list[Made]:
    """Return a result for every recorded one; in a `chain` after the model's own results, else
    after the recorded ones.
    """
    past: list[Result] = []
    made: list[Made] = []
    for name, recorded in in_order([*task.results.items()], Random(task.id)):
        text = await simulator.draw(task, name, past)
        made.append(Made(task, name, recorded, text, tuple(past)))
        past.append(
            Result(
                name, text if chain else recorded, "recorded" if text or not chain else "withheld"
            )
        )
    return made


async def judged(results: Sequence[Made], settings: Settings) -> list[dict[str, float]]:
    """Return similarity and consistency, each in [0, 1]. Raises Failure if the judge
    left some out.
    """
    if not settings.teacher_model:
        return [rules(made) for made in results]
    judge = choose_judge(settings, WORDS)
    verdicts = await gathered(
        [judge.judge(case_of(made)) for made in results], "judging", "results"
    )
    causes = [verdict.cause for verdict in verdicts if verdict.score is None]
    if causes:
        raise Failure(
            f"{len(causes)} of {len(results)} results are not judged, the first one for {causes[0]}"
        )
    return [{name: verdict.parts.get(name, 0.0) for name in WORDS.weights} for verdict in verdicts]


async def measure(
    simulator: LLMSimulator, tasks: Sequence[DiagnosisTask], settings: Settings
) -> dict[str, Any]:
    """Return all numbers of single results and of chains."""
    await simulator.check()
    found = {}
    for mode in ("single", "chain"):
        making = [make(simulator, task, mode == "chain") for task in tasks]
        found[mode] = await _summary(await gathered(making, mode, "cases"), settings)
    return found


async def _summary(made: Iterable[Sequence[Made]], settings: Settings) -> dict[str, Any]:
    every = [one for case in made for one in case]
    given = [one for one in every if one.text]
    if not given:
        raise Failure(
            f"all {len(every)} results were withheld, for "
            "they name the diagnosis; train the model further"
        )
    values = await judged(given, settings)
    return {
        "results": len(every),
        "withheld": len(every) - len(given),
        "similarity": MOST * fmean(one["similarity"] for one in values),
        "consistency": fmean(one["consistency"] for one in values),
        "variety": variety(given),
        **numbers(given),
    }


def table(scores: dict[str, Any]) -> str:
    """Return the numbers of both modes as Markdown."""
    lines = [f"| judged by {scores['judge']} | single | chain |", "|---|---|---|"]
    for key, title in ROWS.items():
        cells = [scores[mode][key] for mode in ("single", "chain")]
        shown = [
            _shown(100 * cell if key == "consistency" and cell is not None else cell)
            for cell in cells
        ]
        lines.append(f"| {title} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def evaluate(arguments: argparse.Namespace) -> None:
    output: Path = arguments.output
    beside = output.with_suffix(".md")
    for path in (output, beside):
        refuse_existing(path, arguments.force)
    settings = load_settings()
    rows = AGENT.rows(arguments.data)
    tasks = [
        task
        for task in map(task_of, Random(arguments.seed).sample(rows, len(rows)))
        if task.results
    ]
    if not tasks:
        raise UsageError(f"{arguments.data} has no recorded results to compare with")
    tasks = tasks[: arguments.n]
    flags = {"simulator": arguments.simulator, "simulator_model": arguments.simulator_model}
    flags["simulator_temperature"] = arguments.temperature
    with serve_environment(AGENT, settings, flags, output.parent, arguments.device) as options:
        simulator = simulator_model(settings, options)
        scores = asyncio.run(measure(simulator, tasks, settings))
    judge = f"llm ({settings.teacher_model})" if settings.teacher_model else "rules"
    data = {"file": arguments.data.name, "cases": len(tasks), "seed": arguments.seed}
    scores = {**simulator.description, "data": data, "judge": judge, **scores}
    for path, text in ((output, json.dumps(scores, indent=1) + "\n"), (beside, table(scores))):
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")
    print(f"{table(scores)}{output}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add(
        "--simulator",
        choices=("llm", "served"),
        required=True,
        help="the model: at its address, or served here",
    )
    add("--simulator-model", metavar="MODEL", help="over SIMULATOR_MODEL")
    add(
        "--data",
        type=Path,
        default=AGENT.splits["test"],
        help="cases with results; default: the agent's test file",
    )
    add("--n", type=positive(int), default=50, help="cases, chosen by --seed (50)")
    add("--seed", type=int, default=0, help="of the choice of cases")
    temperatures = number(float, lambda value: 0 <= value <= 2, "from 0 to 2")
    add("--temperature", type=temperatures, help="default: SIMULATOR_TEMPERATURE, as in training")
    add(
        "--output",
        type=Path,
        required=True,
        metavar="OUT.json",
        help="the numbers; the table is OUT.md beside it",
    )
    add(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="of the vLLM started here"
    )
    add("--force", action="store_true", help="replace existing outputs")
    arguments = parser.parse_args(argv)
    if arguments.output.suffix != ".json":
        parser.error(f"--output {arguments.output}: expected a name that ends in .json")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    return run_command(PROGRAM, lambda: evaluate(arguments))


if __name__ == "__main__":
    sys.exit(main())
