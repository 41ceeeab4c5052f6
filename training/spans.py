"""Keeps the spans of finished rollouts on disk (`--keep-spans`), where the store forgets them.

`spans/<mode>-<step>.jsonl.gz` in the run folder: one span a line, as agent-lightning writes it in JSON, every rollout's
spans together. Each rollout is a gzip member of its own, so what was written before a crash can be read.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from agentlightning.types import Span

from training.records import RolloutRecord


class SpanFiles:
    """The span files of one run."""

    def __init__(self, run_dir: Path) -> None:
        self.folder = run_dir / "spans"
        self.folder.mkdir(parents=True, exist_ok=True)

    def keep(self, record: RolloutRecord, spans: Sequence[Span]) -> None:
        """Append a rollout's spans to the file of its mode and step."""
        lines = "".join(span.model_dump_json() + "\n" for span in spans)
        with (self.folder / f"{record.mode}-{record.step:06d}.jsonl.gz").open("ab") as file:
            file.write(gzip.compress(lines.encode()))
