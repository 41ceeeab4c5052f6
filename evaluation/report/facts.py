"""The texts beside the curves of a report: facts, tables, failures and comparisons of runs."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.command import UsageError
from common.settings import WORK
from episodes import registry
from episodes.agent import Agent, Record
from episodes.joint import JOINED
from episodes.outcomes import UNSCORED
from evaluation.compare import Evaluation, compare
from evaluation.results import MALFORMED
from evaluation.run_folder import EVALUATION, Run, flat, mapping, numbers
from evaluation.tables import PARTS, Rows, points, report_of

Fact = tuple[str, str, str]  # section, name, value
Validation = dict[str, dict[int, dict[str, list[float]]]]  # rewards by task type, step and task
RIGHT = "right"  # the kind of an episode that did not fail
RUN = "Run"  # the section that says which run it is
CHANGED = "Settings that differ from the preset"
# Of a run's summary
NUMBERS = (
    *("rollouts", "generated_tokens", "trained_tokens", "weight_updates", "steps_without_signal"),
    *("signal", "canaries", "stop_reasons", "seconds"),
)


@dataclass
class Tally:
    """A run, its agent if that is known here, and what one reading of the episodes gave.

    evaluated: what a comparison needs, empty of a training run.
    """

    run: Run
    agent: Agent | None
    evaluated: Evaluation
    episodes: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    validation: Validation = field(default_factory=dict)


def tally_of(run: Run) -> Tally:
    """Read all episodes of a run, and keep of each what counts and comparisons need."""
    agent = agent_of(run)
    tally = Tally(run, agent, Evaluation(run.folder, run.scores))
    for record in run.episodes():
        tally.episodes += 1
        if cause := record.get("unscored") or record.get("cause"):
            tally.causes[str(cause)] += 1
        note_validation(tally.validation, record)
        if run.kind != EVALUATION or agent is None or record.get("score") is None:
            continue
        try:
            tally.evaluated.add(agent, record)
        except MALFORMED as error:
            run.say(f"a record of another version is not compared: {type(error).__name__}: {error}")
        if kind := failure_of(record, agent):
            tally.failures[kind] += 1
    return tally


def note_validation(validation: Validation, record: Record) -> None:
    """Add a validation's rollout to its task. Runs older than the index are grouped by `group`."""
    found = numbers(record)
    played = record.get("mode") == "val" and not record.get("cause")
    if played and "step" in found and "reward" in found:
        kinds = validation.setdefault(str(record.get("task_type") or ""), {})
        tasks = kinds.setdefault(int(found["step"]), {})
        tasks.setdefault(str(record.get("index", record.get("group"))), []).append(found["reward"])


def failure_of(record: Record, agent: Agent | None) -> str:
    """Return the kind of failure of an evaluation's episode, or "" where it is not known."""
    if agent is None or record.get("score") is None or "rollout_id" in record:
        return ""
    try:
        return agent.failure(record)
    except MALFORMED:
        return ""


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
    if run.kind == EVALUATION:
        named = {"agent": run.agent, "model": run.scores.get("model"), "when": run.when}
        passed = {"agent", "model", *PARTS}
        conditions = {name: value for name, value in run.scores.items() if name not in passed}
        return [*_section(RUN, named), *_section("Conditions", conditions)]
    summary = run.summary
    named = {
        "agent": run.agent,
        "model": summary.get("model") or run.config.get("actor_rollout_ref.model.path"),
        "when": run.when,
    }
    if summary.get("exit_reason") != "done":
        named |= {name: summary[name] for name in ("exit_reason", "message") if name in summary}
    if summary.get("device"):
        named["device"] = summary["device"]
    conditions = {"store": summary["store"]} if "store" in summary else {}
    conditions |= mapping(summary.get("environment"))
    counts = {name: summary[name] for name in NUMBERS if name in summary}
    return [
        *_section(RUN, named),
        *_section("Conditions", conditions),
        *changed_settings(run),
        *_section("Numbers", counts),
        *_section("Versions", run.object_in("versions.json")),
    ]


def _section(name: str, tree: dict[str, Any]) -> Iterator[Fact]:
    for key, value in flat(tree):
        if key:
            yield name, key, text(value)


def changed_settings(run: Run) -> Iterator[Fact]:
    """Yield the name of the preset, then each of its keys that has another value in the run."""
    preset = run.object_in("preset.json")
    yield CHANGED, "preset", text(preset.get("name"))
    for name, value in flat(mapping(preset.get("keys"))):
        key = name.lstrip("+")
        usual = run.config.get(value[2:-1]) if str(value).startswith("${") else value
        if key in run.config and run.config[key] != usual:
            yield CHANGED, key, f"{text(run.config[key])} ({text(usual)})"


def tables_of(tally: Tally) -> dict[str, Rows]:
    """Return the tables of an evaluation by heading, or {} if it has not ended."""
    scores = tally.run.scores
    if not scores or tally.agent is None:
        return {}
    try:
        return dict(report_of(tally.agent, scores).tables)
    except MALFORMED as error:
        tally.run.say(f"scores.json is of another version: {type(error).__name__}: {error}")
        return {}


def failures_of(tallies: Sequence[Tally]) -> list[tuple[str, dict[int, str]]]:
    """Return each kind of failure, most frequent first, with episodes and share by evaluation."""
    found: dict[str, dict[int, str]] = {}
    known = {number: tally.failures for number, tally in enumerate(tallies) if tally.failures}
    total = sum((tally.failures for tally in tallies), Counter[str]())
    most_first = sorted(total, key=lambda kind: (kind == RIGHT, -total[kind], kind))
    for kind in most_first:
        found[kind] = {}
        for number, failures in known.items():
            share = points(failures[kind] / failures.total())
            found[kind][number] = f"{failures[kind]} ({share})"
    return list(found.items())


def unscored(tallies: Sequence[Tally]) -> Rows:
    """Return a table of the causes for which episodes have no score or entered no update."""
    rows: list[list[str]] = [["run", "cause", "episodes", "tokens", "meaning"]]
    for tally in tallies:
        tokens = mapping(tally.run.summary.get("dropped_tokens"))
        for cause in dict.fromkeys([*tally.causes, *tokens]):
            meaning = UNSCORED.get(cause, "")
            if cause == "no_update":
                meaning = "scored, but its step made no update"
            counts = [text(tally.causes.get(cause)), text(tokens.get(cause))]
            rows.append([tally.run.label, cause, *counts, meaning])
    return rows


@dataclass(frozen=True)
class Comparison:
    """What `evaluation.compare` finds of a run against its base, both as numbers of the runs."""

    base: int
    run: int
    result: dict[str, Any]


def comparisons(tallies: Sequence[Tally]) -> list[Comparison]:
    """Return each finished evaluation's comparison with its demo's part before, or the first one."""
    first: dict[str, int] = {}
    parts: dict[Any, int] = {}  # the last one of each folder and agent
    found = []
    for number, tally in enumerate(tallies):
        run = tally.run
        if not run.scores or not tally.evaluated.values:
            continue
        base = parts.get((run.given, run.agent), first.setdefault(run.agent, number))
        parts[run.given, run.agent] = number
        if base == number:
            continue
        try:
            result = compare(tallies[base].evaluated, tally.evaluated)
            found.append(Comparison(base, number, result))
        except (UsageError, *MALFORMED) as error:
            before = tallies[base].run.label
            run.say(f"not compared with {before}: {type(error).__name__}: {error}")
    return found


def text(value: Any) -> str:
    """Return a value as a cell: a dash for nothing, six digits, paths from the repository."""
    if value is None or value == "":
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    found = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return found.replace(f"{WORK}/", "")
