"""Rows for verl (`data.custom_cls`): one line of a JSONL file becomes one prompt group."""

import json
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from torch.utils.data import Dataset

from episodes.joint import WHOSE
from training.engine.mixture import draws


class RolloutDataset(Dataset):
    """Lines of a file, in its order, or as `training.engine.mixture` draws them."""

    def __init__(
        self, data_files: str, config: DictConfig, max_samples: int = -1, **_: Any
    ) -> None:
        lines = [*filter(None, Path(data_files).read_text(encoding="utf-8").split("\n"))]
        self.lines = lines[:max_samples] if max_samples > 0 else lines
        rows = [json.loads(line) for line in self.lines]
        self.types = [str(row.get("task_type") or "all") for row in rows]
        self.agents = [str(row.get(WHOSE) or "") for row in rows]
        self.order = draws(rows, int(config.seed))

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, position: int) -> dict[str, Any]:
        index = self.order[position]
        return {
            "task": self.lines[index],
            "index": index,
            "data_source": self.types[index],  # by which verl groups a validation
            "agent": self.agents[index],  # "" where only one is trained
            # Fields verl's metrics look for. The agent, not verl, builds the prompt and holds the
            # reference.
            "raw_prompt": "",
            "reward_model": {"ground_truth": ""},
        }
