"""Rows for verl (`data.custom_cls`): one line of a JSONL file becomes one prompt group."""

import json
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig
from torch.utils.data import Dataset

from episodes.joint import WHOSE
from training.engine.mixture import draws


class RolloutDataset(Dataset):
    """Lines of one or several files, in file order, or as `training.engine.mixture` draws them.

    `config.group_column`, when set, names the field whose value groups the validation metrics.
    """

    def __init__(
        self,
        data_files: str | list[str] | ListConfig,
        tokenizer: Any = None,
        config: DictConfig | None = None,
        processor: Any = None,
        max_samples: int = -1,
    ) -> None:
        files = [data_files] if isinstance(data_files, str) else list(data_files)
        lines: list[str] = []
        for file in files:
            lines += filter(None, Path(file).read_text(encoding="utf-8").split("\n"))
        self.lines = lines[:max_samples] if max_samples > 0 else lines
        settings = config if config is not None else DictConfig({})
        column = settings.get("group_column")
        rows = [json.loads(line) for line in self.lines]
        self.groups = [str((column and row.get(column)) or "all") for row in rows]
        self.agents = [str(row.get(WHOSE) or "") for row in rows]
        self.order = draws(rows, int(settings.get("seed") or 0))

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, position: int) -> dict[str, Any]:
        index = self.order[position]
        return {
            "task": self.lines[index],
            "index": index,
            "data_source": self.groups[index],
            "agent": self.agents[index],  # "" where only one is trained
            # Fields verl's metrics look for. The agent, not verl, builds the prompt and holds the
            # reference.
            "raw_prompt": "",
            "reward_model": {"ground_truth": ""},
        }
