"""A model folder that cannot work is named before anything starts."""

import json
import shutil
from pathlib import Path

import pytest

from sql_agent.agent import AGENT
from training.models import cache_bytes, check_disk, check_model, read_template
from training.plan import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(AGENT.model, tmp_path / "model"))


def test_the_bundled_model_passes(folder: Path) -> None:
    check_model(str(folder), 1024)


def test_a_hub_id_is_left_to_the_hub() -> None:
    check_model("Qwen/Qwen3-0.6B")


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/model", "nowhere", "a/b/c"])
def test_a_missing_folder(name: str) -> None:
    with pytest.raises(ConfigError, match="no model folder"):
        check_model(name)


def test_no_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"config\.json"):
        check_model(str(folder))


def test_no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match="no tokenizer"):
        check_model(str(folder))


def test_no_chat_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ConfigError, match="no chat template"):
        check_model(str(folder))


def test_a_template_without_tools(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    check_model(str(folder), tools=False)
    with pytest.raises(ConfigError, match="does not render tools"):
        check_model(str(folder))


def test_of_several_templates_the_one_that_is_meant(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    both = [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "with tools"},
    ]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": both}))
    assert (read_template(str(folder)), read_template(str(folder), tools=False)) == (
        "with tools",
        "plain",
    )


def test_more_context_than_positions(folder: Path) -> None:
    with pytest.raises(ConfigError, match="exceeds"):
        check_model(str(folder), 1_000_000)


def test_a_disk_too_small_for_a_checkpoint(folder: Path, tmp_path: Path) -> None:
    check_disk(str(folder), tmp_path / "not" / "there" / "yet")
    with (folder / "model-2.safetensors").open("wb") as huge:
        huge.truncate(2**43)  # sparse: takes no room itself
    with pytest.raises(ConfigError, match="GB free; a checkpoint of"):
        check_disk(str(folder), tmp_path)


def test_the_cache_holds_what_may_be_in_flight_and_no_more(folder: Path) -> None:
    """Three layers, two heads of 32 dimensions, key and value, 4 bytes: 1,536 a token; 8 blocks of 128, and one."""
    assert cache_bytes(str(folder), 128, 1000) == (128 * 8 + 1) * 128 * 1536
    assert cache_bytes(str(folder), 64) == (64 * 8 + 1) * 128 * 1536
    assert cache_bytes(str(folder), 10_000) == 2**30


def test_the_cache_of_what_is_not_known_is_a_gib(folder: Path) -> None:
    assert cache_bytes("Qwen/Qwen3-0.6B", 64) == 2**30
    (folder / "config.json").write_text(json.dumps({"text_config": {}}))
    assert cache_bytes(str(folder), 64) == 2**30
