"""A model that does not fit a card is named before anything is loaded, with what would fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from episodes.agent import Service
from tests.messages import missing
from training.setup.gpu_memory import check_gpu_memory, share_of_partners
from training.setup.plan import ConfigError
from training.setup.weights import parameters_of

CARD = 80 * 10**9
SIZES = {"0.6B": 600_000_000, "3B": 3_000_000_000, "7B": 7_600_000_000}


def model(folder: Path, size: str) -> str:
    """A model folder of this size; only the header of its weights is there."""
    shapes = {"embed": {"shape": [SIZES[size] // 1000, 1000]}, "__metadata__": {"format": "pt"}}
    header = json.dumps(shapes).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    (folder / "config.json").write_text('{"vocab_size": 152000}')
    assert parameters_of(folder) == SIZES[size]
    return str(folder)


def config_of(gpus: int, rank: int = 0, **algorithm: Any) -> DictConfig:
    parts = {"actor": {"ppo_max_token_len_per_gpu": 20_480}, "model": {"lora_rank": rank}}
    return OmegaConf.create(
        {
            "trainer": {"n_gpus_per_node": gpus, "nnodes": 1},
            "actor_rollout_ref": parts,
            "algorithm": {"adv_estimator": "grpo"} | algorithm,
            "critic": {"fsdp": {"param_offload": False}},
        }
    )


@pytest.mark.parametrize(("size", "gpus", "rank"), [("0.6B", 1, 0), ("7B", 4, 0), ("7B", 1, 32)])
def test_what_fits_is_let_through(tmp_path: Path, size: str, gpus: int, rank: int) -> None:
    check_gpu_memory(config_of(gpus, rank), model(tmp_path / "m", size), CARD)


@pytest.mark.parametrize(
    ("gpus", "changes", "named"),
    [
        (1, {}, ("149 GB", "80 GB", "--lora", "3 GPUs")),
        (2, {}, ("81 GB", "--lora", "3 GPUs")),
        (4, {"adv_estimator": "gae"}, ("81 GB", "5 GPUs")),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(
    tmp_path: Path, gpus: int, changes: dict[str, Any], named: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as refused:
        check_gpu_memory(config_of(gpus, **changes), model(tmp_path / "m", "7B"), CARD)
    assert not missing(str(refused.value), *named)


@pytest.mark.parametrize(("partners", "fits"), [(0, True), (1, False)])
def test_a_partner_s_share_of_the_card_is_counted(
    tmp_path: Path, partners: int, fits: bool
) -> None:
    """Its vLLM stays on the card while the policy's sleeps."""
    taken = share_of_partners([Service("patient", "m")] * partners, 1)
    folder = model(tmp_path / "m", "3B")
    if fits:
        check_gpu_memory(config_of(1), folder, CARD, taken)
        return
    with pytest.raises(ConfigError) as refused:
        check_gpu_memory(config_of(1), folder, CARD, taken)
    assert not missing(str(refused.value), "58 of 80 GB", "--lora")


@pytest.mark.parametrize(
    ("visible", "own", "named"),
    [("", "1", "0, 1"), ("", "2,3", None), ("4,5,6", "5", "4, 5"), ("4,5,6", "6", None)],
)
def test_a_partner_s_own_gpu_is_none_of_the_policy_s(
    visible: str, own: str, named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would fill it, and the second would end."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    partner = [Service("patient", "m", own)]
    if named is None:
        assert share_of_partners(partner, 2) == 0
        return
    with pytest.raises(ConfigError) as refused:
        share_of_partners(partner, 2)
    assert not missing(str(refused.value), own, named, "--n-gpus 2")
