"""A folder that is no model is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from code_agent.medagentgym.config import Model
from code_agent.medagentgym.models import served
from common.command import UsageError


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    model = Model(model_type="vLLM", model_name=str(tmp_path))
    with pytest.raises(UsageError, match=str(tmp_path)), served(model, tmp_path / "vllm.log"):
        raise AssertionError
    assert not (tmp_path / "vllm.log").exists()
