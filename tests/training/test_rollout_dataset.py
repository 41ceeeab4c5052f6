"""What verl is given of a file of questions: its lines, untouched.

Keeps of docs/architecture.md: what is trained on is the run folder's own rows.
"""

from pathlib import Path

from omegaconf import OmegaConf

from training.engine.dataset import RolloutDataset


def test_lines_travel_as_they_are_and_groups_are_read_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    lines = ['{"a":  1, "kind": "x"}', '{"a": "一\u2028二"}', '{"kind": "y"}']
    first.write_text(f"{lines[0]}\n{lines[1]}\n", encoding="utf-8")
    second.write_text(lines[2], encoding="utf-8")
    rows = RolloutDataset(
        [str(first), str(second)], config=OmegaConf.create({"group_column": "kind"})
    )
    assert [rows[i]["task"] for i in range(len(rows))] == lines
    assert [rows[i]["data_source"] for i in range(3)] == ["x", "all", "y"]
    assert [rows[i]["index"] for i in range(3)] == [0, 1, 2]
    assert {RolloutDataset(str(first))[i]["data_source"] for i in range(2)} == {"all"}
    assert len(RolloutDataset([str(first), str(second)], max_samples=2)) == 2
