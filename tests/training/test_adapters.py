"""Which folders can be gone on from; real adapters are in tests/engine/test_signal.py."""

from pathlib import Path

import pytest

from training.setup.model_folder import check_adapter
from training.setup.plan import ConfigError


def test_a_folder_without_an_adapter(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no adapter_model\.safetensors there"):
        check_adapter(str(tmp_path), 8)


def test_an_adapter_of_another_rank(tmp_path: Path) -> None:
    (tmp_path / "adapter_model.safetensors").touch()
    (tmp_path / "adapter_config.json").write_text('{"r": 16}')
    check_adapter(str(tmp_path), 16)
    with pytest.raises(ConfigError, match="has rank 16, but --lora-rank is 8"):
        check_adapter(str(tmp_path), 8)
