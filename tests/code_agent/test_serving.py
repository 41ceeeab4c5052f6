"""A folder that is no model is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from code_agent.medagentgym.serving import served
from common.command import UsageError


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    section = {"model_type": "vLLM", "model_name": str(tmp_path)}
    with pytest.raises(UsageError, match=str(tmp_path)), served(section, tmp_path / "vllm.log"):
        raise AssertionError
    assert not (tmp_path / "vllm.log").exists()
