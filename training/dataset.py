"""Rows for verl: one Parquet row becomes one prompt group.

The engine does not look inside a row: it travels as JSON text to the agent, which makes its task of it. Named in verl's
`data.custom_cls`; nobody runs it.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as parquet
from omegaconf import DictConfig, ListConfig
from torch.utils.data import Dataset


class RolloutDataset(Dataset):
    """Rows of one or several Parquet files, in file order.

    `config.group_column`, when set, names the column whose value groups the validation metrics.
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
        rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
        self.rows = rows[:max_samples] if max_samples > 0 else rows
        self.group_column = config.get("group_column") if config is not None else None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.rows[index]
        group = row.get(self.group_column) if self.group_column else None
        return {
            "task": json.dumps(row, ensure_ascii=False, default=str),
            "index": index,
            "data_source": str(group or "all"),
            # Fields verl's metrics look for; the agent, not verl, builds the prompt and holds the reference.
            "raw_prompt": "",
            "reward_model": {"ground_truth": ""},
        }
