"""Serve a folder as the policy's model for as long as episodes are played.

with served({"model_type": "vLLM", "model_name": "code_agent/tiny_model"}, Path("vllm.log")) as section: ...
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from training.serve import serve


@contextlib.contextmanager
def served(section: Mapping[str, Any], log: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the section with the address of its model.

    A section that names a port or an address stays unchanged, because a server answers there
    already.

    Raises:
        ConfigError: the folder cannot be served.
        ServeError: the server does not start.
    """
    folder = Path(str(section.get("model_name")))
    answers_already = section.get("port") or section.get("base_url")
    if section["model_type"] != "vLLM" or answers_already or not folder.is_dir():
        yield section
        return
    print(f"starting vLLM for {folder}, log in {log}", file=sys.stderr, flush=True)
    with serve(str(folder), log, tools=False) as server:
        yield {**section, "base_url": server.base_url, "model_name": server.name}
