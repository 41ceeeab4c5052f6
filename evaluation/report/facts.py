"""The texts beside the curves of a report: facts of each run, its tables, differences, and what has
no score.

Everything here is texts and numbers by name; the page and the Markdown show the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from common.command import UsageError
from common.settings import ROOT
from episodes import registry
from episodes.agent import Agent, Record
from episodes.joint import JOINED
from episodes.outcomes import UNSCORED
from evaluation.compare import Evaluation, compare, conditions
from evaluation.compare import report_of as comparison_of
from evaluation.metrics import headline_of
from evaluation.report.charts import Validation, note_validation
from evaluation.run_folder import EVALUATION, Run, flat
from evaluation.tables import MEASURED, Rows, report_of

Fact = tuple[str, str, str]  # section, name, value
RUN = "Run"  # the section that says which run it is
ASKED = (
    "id",
    "task_type",
    "difficulty",
    "wording",
    "question",
    "reference",
    "answer",
    "stop_reason",
)
OWN_PATHS = (
    "trainer.experiment_name",
    "trainer.default_local_dir",
    "data.train_files",
    "data.val_files",
)
COUNTS = (
    "rollouts",
    "generated_tokens",
    "trained_tokens",
    "weight_updates",
    "steps_without_signal",
)
NUMBERS = (*COUNTS, "signal", "canaries", "stop_reasons", "seconds")


@dataclass
class Tally:
    """The counts from reading all episodes of a run once; records are kept only if evaluations are
    compared.
    """

    episodes: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    validation: Validation = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)
    asked: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, agent: Agent | None, compared: bool) -> Tally:
        tally = cls()
        for record in run.episodes():
            tally.episodes += 1
            cause = record.get("unscored") or record.get("cause")
            tally.causes.update([str(cause)] if cause else [])
            note_validation(tally.validation, record)
            if compared and run.kind == EVALUATION and agent and record.get("score") is not None:
                try:
                    tally._note(record, headline_of(agent, record))
                except (KeyError, TypeError, ValueError) as error:
                    run.say(
                        "a record of another version is not "
                        f"compared: {type(error).__name__}: {error}"
                    )
        return tally

    def _note(self, record: Record, value: float | None) -> None:
        if value is not None:
            self.values.setdefault(record["id"], []).append(value)
            self.asked.setdefault(record["id"], {name: record.get(name, "") for name in ASKED})


def agent_of(run: Run) -> Agent | None:
    """Return the run's agent, or None with a note if no file names an agent that is known here."""
    if run.agent and {*run.agent.split(JOINED)} <= {*registry.names()}:
        return registry.get(run.agent)
    run.say(
        f"no agent of this place is named: {run.agent or 'no file names one'}; "
        "what only an agent knows is left out"
    )
    return None


def facts_of(run: Run) -> list[Fact]:
    """Return the facts of a run by section: what it was, when, and under which conditions."""
    return [*_evaluation_facts(run)] if run.kind == EVALUATION else [*_training_facts(run)]


def _evaluation_facts(run: Run) -> Iterator[Fact]:
    yield from (
        (RUN, name, run.agent if name == "agent" else text(run.scores.get(name)))
        for name in ("agent", "model")
    )
    yield RUN, "when", run.when
    for name, value in flat(
        {
            name: value
            for name, value in run.scores.items()
            if name not in ("agent", "model", *MEASURED)
        }
    ):
        yield "Conditions", name, text(value)


def _training_facts(run: Run) -> Iterator[Fact]:
    summary = run.summary
    yield RUN, "agent", run.agent
    yield (
        RUN,
        "model",
        text(summary.get("model") or run.config.get("actor_rollout_ref.model.path")),
    )
    yield RUN, "when", run.when
    ended = {"exit_reason": summary.get("exit_reason"), "message": summary.get("message")}
    if ended["exit_reason"] == "done":
        ended = {}
    for name, value in {**ended, "device": summary.get("device")}.items():
        if value:
            yield RUN, name, text(value)
    conditions = {name: summary[name] for name in ("store",) if name in summary}
    for name, value in flat(conditions | (summary.get("environment") or {})):
        yield "Conditions", name, text(value)
    yield from changed_settings(run)
    for name, value in flat({name: summary[name] for name in NUMBERS if name in summary}):
        yield "Numbers", name, text(value)
    yield from (("Versions", name, text(value)) for name, value in run.versions.items())


def changed_settings(run: Run) -> Iterator[Fact]:
    """Yield the name of the preset, then each of its keys that has another value in the run."""
    section, keys = "Settings that differ from the preset", run.preset.get("keys")
    yield section, "preset", text(run.preset.get("name"))
    preset_keys = {
        key.lstrip("+"): value for key, value in flat(keys if isinstance(keys, dict) else {}) if key
    }
    for key, value in preset_keys.items():
        usual = run.config.get(value[2:-1]) if str(value).startswith("${") else value
        if key in run.config and run.config[key] != usual:
            yield section, key, f"{text(run.config[key])} ({text(usual)})"


def differing_settings(runs: Sequence[Run]) -> Rows:
    """Return every key of verl's configuration that is not the same in all training runs, after a
    header; () if there is none.
    """
    known = [run for run in runs if run.config]
    keys = dict.fromkeys(key for run in known for key in run.config if key not in OWN_PATHS)
    rows = [[key, *(text(run.config.get(key)) for run in known)] for key in keys]
    different = [row for row in rows if len(set(row[1:])) > 1]
    return (
        [["setting", *(run.label or "run" for run in known)], *different]
        if len(known) > 1 and different
        else ()
    )


def tables_of(run: Run, agent: Agent | None) -> dict[str, Rows]:
    """Return the tables of an evaluation by heading; {} if it has not ended."""
    if not run.scores or agent is None:
        return {}
    try:
        return dict(report_of(agent, run.scores).tables)
    except (KeyError, TypeError, AttributeError) as error:
        run.say(f"scores.json is of another version: {type(error).__name__}: {error}")
        return {}


def unscored(runs: Sequence[Run], tallies: Sequence[Tally]) -> Rows:
    """Return a table of the causes for which episodes have no score or entered no update; only the
    header if there are none.
    """
    rows: list[list[str]] = [["run", "cause", "episodes", "tokens", "meaning"]]
    for run, tally in zip(runs, tallies, strict=True):
        tokens = run.summary.get("dropped_tokens") or {}
        for cause in dict.fromkeys([*tally.causes, *tokens]):
            rows.append(
                [
                    run.label,
                    cause,
                    text(tally.causes.get(cause)),
                    text(tokens.get(cause)),
                    _meaning(cause),
                ]
            )
    return rows


def _meaning(cause: str) -> str:
    return (
        "scored, but its step made no update" if cause == "no_update" else UNSCORED.get(cause, "")
    )


@dataclass(frozen=True)
class Comparison:
    """What `evaluation.compare` finds of a run against its base, both as numbers of the runs."""

    base: int
    run: int
    result: dict[str, Any]


def comparisons(runs: Sequence[Run], tallies: Sequence[Tally]) -> list[Comparison]:
    """Return a comparison of every other finished evaluation with the first of its agent, on the
    tasks that both have.
    """
    finished = [
        number
        for number, (run, tally) in enumerate(zip(runs, tallies, strict=True))
        if run.scores and tally.values
    ]
    found = []
    for number in finished:
        run = runs[number]
        base = next(one for one in finished if runs[one].agent == run.agent)
        if base == number:
            continue
        try:
            before, after = (_side(runs[one], tallies[one]) for one in (base, number))
            found.append(Comparison(base, number, compare(before, after, seed=0)))
        except (UsageError, KeyError, TypeError) as error:
            run.say(f"not compared with {runs[base].label}: {type(error).__name__}: {error}")
    return found


def differences(runs: Sequence[Run], compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return the tables of every comparison, and warnings to read before they are believed."""
    found = []
    for one in compared:
        names = [runs[number].label for number in (one.base, one.run)]
        report = comparison_of(one.result, names)
        found.append(
            {
                "sides": names[::-1],
                "facts": conditions(one.result, names),
                "tables": dict(report.tables),
            }
        )
    return found


def _side(run: Run, tally: Tally) -> Evaluation:
    means = {name: fmean(values) for name, values in tally.values.items()}
    return Evaluation(run.folder, run.scores, means, tally.asked)


def text(value: Any) -> str:
    """Return a value as a table's cell: a dash for nothing, numbers of six digits, and paths inside
    the repository relative to it.
    """
    if value is None or value == "":
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    found = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return found.replace(f"{ROOT}/", "")
