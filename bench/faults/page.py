"""Write bench/faults.md: the rows of faults.toml with what was measured of each."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

NOISE = re.compile(
    r"/\S*/faults-\w+/|\x1b\[[0-9;]*m"
)  # the folder of a run that is gone, and colours
WORDS = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
COLUMNS = ("fault", "run", "lost", "said", "how it went on", "zero, twice", "left")


def page(faults: Sequence[Mapping[str, Any]], measured: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the whole page. Faults that were not done say so."""
    rows = [row_of(fault, measured.get(fault["name"])) for fault in faults]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [COLUMNS, ["---"] * len(COLUMNS), *rows])
    known = {
        fault["scene"]: measured[fault["name"]] for fault in faults if fault["name"] in measured
    }
    runs = "\n".join(
        f"| `{scene}` | {one['agent']} | {one['parts']} |" for scene, one in known.items()
    )
    done = sum(fault["name"] in measured for fault in faults)
    return WORDS.format(runs=runs, table=table, done=done, all=len(faults))


def row_of(fault: Mapping[str, Any], result: Mapping[str, Any] | None) -> list[str]:
    name = fault["name"] + (
        f", {fault['seconds']} s" if "seconds" in fault and " s " not in fault["name"] else ""
    )
    if result is None:
        return [name, fault["scene"], *["not run"] * (len(COLUMNS) - 2)]
    said = "nothing"
    if result["said"]:
        shown = f"`{NOISE.sub('', result['said']).strip()[:160].replace('|', '/')}` {result['said_after']:.0f} s"
        said = shown + (" (with a traceback)" if result["traceback"] else "")
    wrong = f"{result['zero']}, {result['twice']}"
    return [
        name,
        fault["scene"],
        lost(result),
        said,
        went(result),
        wrong,
        ", ".join(result["left"]) or "nothing",
    ]


def lost(result: Mapping[str, Any]) -> str:
    causes = ", ".join(f"{count} {cause}" for cause, count in result["lost"].items())
    share = f"{sum(result['lost'].values())} of {result['episodes']}" + (
        f" ({causes})" if causes else ""
    )
    return (
        share
        if result["code"] is None
        else "the step being played" + (f"; before it {share}" if causes else "")
    )


def went(result: Mapping[str, Any]) -> str:
    if "with" in result:
        there, without = (median(result[name]) for name in ("with", "without"))
        return f"by itself; median of steps with it {there:.1f} s, without {without:.1f} s ({there / without - 1:+.0%})"
    if result["code"] is None:
        steps = result["step_seconds"]
        lengths = (
            f"{min(steps):.0f} to {max(steps):.0f} s, median {median(steps):.0f} s"
            if steps
            else "none"
        )
        return f"by itself; steps: {lengths}"
    again = (
        f"; the same command made its next step {result['resumed']} s after its start"
        if "resumed" in result
        else ""
    )
    ended = f"ended with exit code {result['code']} after {result['seconds']:.0f} s"
    return f"{ended}, all gone {result['gone_after']:.0f} s later{again}"
