"""The rows that README and docs quote come from demo.json by way of docs/results.json."""

import json
from pathlib import Path
from typing import Any

from bench.published import main, read_rows


def demo(folder: Path, seed: int, commit: str = "0123456789ab", **values: Any) -> Path:
    """Write what is read of a finished demo."""
    folder.mkdir()
    known = {"agent": "sql", "seed": seed, "headline": "score", "before": 40.0, "after": 80.04}
    known |= {"gain": 40.04, "ci95": [35.0, 45.0], "n_eval": 320, "steps": 40, "minutes": 9.5}
    known |= {"by_failure": {}, "curve": [], "by_wording": {"seen": {"after": 81.0}}}
    known |= {"commit": commit, "command": f"python -m evaluation.demo sql --run-dir {folder}"}
    (folder / "demo.json").write_text(json.dumps(known | values), encoding="utf-8")
    return folder


def test_a_row_replaces_that_of_the_same_demo(tmp_path):
    to = tmp_path / "results.json"
    first, second = demo(tmp_path / "a", 1), demo(tmp_path / "b", 2, before=42.0)
    assert main([str(first), str(second), "--to", str(to)]) == 0
    assert main([str(demo(tmp_path / "c", 1, before=41.0)), "--to", str(to)]) == 0
    rows = read_rows(to)
    assert [(row["seed"], row["before"]) for row in rows] == [(1, 41.0), (2, 42.0)]
    assert str(tmp_path) not in to.read_text(encoding="utf-8"), "paths of a machine stay out"


def test_a_demo_that_no_commit_repeats_is_refused(tmp_path, capsys):
    to = tmp_path / "results.json"
    assert main([str(demo(tmp_path / "a", 1, "0123-dirty")), "--to", str(to)]) == 2
    assert "uncommitted changes" in capsys.readouterr().err
    assert not to.exists()
