"""Which checkpoint a resumed run continues.

Keeps of docs/architecture.md: `--resume` continues from the last complete checkpoint, of the run
that is meant.
"""

import json
import os
from pathlib import Path

from training.engine.checkpoints import best_step, find_checkpoint, run_of, step_of


def make_run(runs: Path, name: str, steps: list[int], age: float) -> Path:
    run = runs / name
    for step in steps:
        (run / "checkpoints" / f"global_step_{step}" / "actor").mkdir(parents=True)
    run.mkdir(parents=True, exist_ok=True)
    if steps:
        mark = run / "checkpoints" / "latest_checkpointed_iteration.txt"
        mark.write_text(str(max(steps)))
        os.utime(mark, (age, age))
    return run


def test_latest_is_the_newest_complete_checkpoint_of_the_newest_run_that_has_one(
    tmp_path: Path,
) -> None:
    make_run(tmp_path, "old", [20, 40], age=1)
    newer = make_run(tmp_path, "newer", [20], age=2)
    make_run(tmp_path, "newest-without", [], age=3)
    (tmp_path / "old" / "report.html").touch()  # which the old run's folder has last
    found = find_checkpoint("latest", None, tmp_path)
    assert (run_of(found), step_of(found)) == (newer, 20)


def test_of_equal_validations_the_later_step_is_the_best(tmp_path: Path) -> None:
    """It was trained longer; a step without a validation or a checkpoint is none."""
    scores = {10: 0.5, 20: 0.7, 30: 0.7, 40: None, 50: 0.9}
    lines = [
        {"step": step, "data": {} if score is None else {"val-core/all/reward/mean@1": score}}
        for step, score in scores.items()
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert best_step(tmp_path, [10, 20, 30, 40]) == 30
    assert best_step(tmp_path, [10, 20]) == 20
    assert best_step(tmp_path, [40]) is None
