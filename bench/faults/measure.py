"""Do a fault to a run that plays, and measure what follows from it."""

import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from statistics import median
from typing import Any

from bench.faults.acts import ACTS
from bench.faults.doors import REPLY_SECONDS
from bench.faults.scenes import Scene

FINISHED, LONGER = 0.95, 1.15  # at least, and at most, where a tenth of all calls fails
STEPS = 2  # that end after a fault, before it is believed that the run goes on


def play(scene: Scene, fault: Mapping[str, Any]) -> dict[str, Any]:
    """Do it, end it after its seconds, and wait until the run has gone on or ended."""
    if "pairs" in fault:
        return compare(scene, fault)
    before, began = scene.steps(), time.time()
    undo = ACTS[fault["do"]](scene, fault)
    if fault.get("seconds"):
        scene.until(lambda: False, fault["seconds"])
    if undo and fault["expected"] == "goes on":
        undo()
        undo = None
    over = len(scene.steps())
    enough = 10**9 if fault["expected"] == "ends" else over + STEPS
    scene.until(lambda: len(scene.steps()) >= enough)
    result = measure(scene, fault, before, began)
    if undo:
        undo()
    return result


def has_more_steps(scene: Scene, than: int) -> bool:
    return len(scene.steps()) > than


def compare(scene: Scene, fault: Mapping[str, Any]) -> dict[str, Any]:
    """Do it in every other step. Losses are of those steps, lengths of both kinds."""
    before, began, hit = scene.steps(), time.time(), set[int]()
    scene.doors["policy"].reply_seconds = fault["reply_seconds"]
    for number in range(2 * fault["pairs"]):
        undo, over = ACTS[fault["do"]](scene, fault) if number % 2 else None, len(scene.steps())
        scene.until(partial(has_more_steps, scene, over))
        if undo:
            undo()
            hit.add(scene.steps()[-1]["step"])
    scene.doors["policy"].reply_seconds = REPLY_SECONDS
    result, rows = measure(scene, fault, before, began), scene.steps()[len(before) :]
    steps = {row["step"]: row for row in rows if row["step"] in hit}
    lengths = {
        name: [row["timing_s/step"] for row in rows if (row["step"] in hit) == name]
        for name in (True, False)
    }
    return (
        result
        | books(scene.rows("episodes.jsonl"), steps)
        | {"with": lengths[True], "without": lengths[False]}
    )


def measure(
    scene: Scene, fault: Mapping[str, Any], before: list[Any], began: float
) -> dict[str, Any]:
    """Return what is seen of a run after a fault.

    began: when it began. before: the steps that the run had made then.
    """
    seconds, code = time.time() - began, scene.trainer.code
    left, gone = scene.left() if code is not None else ([], 0.0)
    said = scene.said(began)
    steps = {row["step"]: row for row in scene.steps()[len(before) :]}
    return {
        "name": fault["name"],
        "expected": fault["expected"],
        "parts": scene.parts,
        "agent": scene.agent,
        "at": time.strftime("%Y-%m-%d"),
        "code": code,
        "seconds": round(seconds, 1),
        "step_seconds": [round(row["timing_s/step"], 1) for row in steps.values()],
        "said": said[0] if said else None,
        "said_after": round(said[1], 1) if said else None,
        "traceback": scene.traceback(began),
        "left": left,
        "gone_after": round(gone, 1),
        **books(scene.rows("episodes.jsonl"), steps),
    }


def books(
    episodes: list[dict[str, Any]], steps: Mapping[int, Mapping[str, float]]
) -> dict[str, Any]:
    """Count what became of the steps that ended since.

    zero: episodes that were trained without a reward of their own. twice: episodes that were
    trained a second time, or their tokens.
    """
    rows = [row for row in episodes if row["mode"] == "train" and row["step"] in steps]
    scored = [row for row in rows if row["cause"] is None]
    trained = sum(int(step.get("books/episodes", 0)) for step in steps.values())
    tokens = sum(int(step.get("books/trained_tokens", 0)) for step in steps.values())
    unpaid = sum(
        row["reward"] is None or not row["terms"] or row["status"] != "succeeded" for row in scored
    )
    keys = Counter((row["group"], row["sample"]) for row in scored)
    return {
        "episodes": len(rows),
        "lost": dict(Counter(row["cause"] for row in rows if row["cause"]).most_common()),
        "zero": max(0, trained - len(scored)) + unpaid,
        "twice": sum(keys.values())
        - len(keys)
        + int(tokens > sum(row["generated_tokens"] for row in scored)),
    }


def right(result: Mapping[str, Any]) -> bool:
    """Return whether the run did what is expected, trained nothing wrongly, and left nothing
    behind.

    If steps are compared, most episodes must be trained on, in little more time.
    """
    if "with" in result:
        finished = 1 - sum(result["lost"].values()) / result["episodes"]
        if finished < FINISHED or median(result["with"]) > LONGER * median(result["without"]):
            return False
    as_expected = (result["code"] is None) == (result["expected"] == "goes on")
    wrong = [result[name] for name in ("zero", "twice", "left", "traceback")]
    return as_expected and not any(wrong)
