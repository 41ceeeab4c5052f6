"""A model folder that cannot work is named before anything starts; which device a run uses."""

import hashlib
import json
import os
import shutil
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import psutil
import pytest

from common.settings import ROOT
from episodes.agent import bundled_model
from sql_agent.agent import AGENT
from tests.corpora import cases_of
from tests.messages import missing
from tests.programs import Ended, python
from tests.serving import JsonHandler, serving
from tests.training.plans import plan_of
from training.setup import device
from training.setup.device import is_large
from training.setup.model_folder import CACHE_BYTES, cache_bytes, check_model
from training.setup.plan import ConfigError
from training.start.check import check_disk, check_memory

COMMIT = "0" * 40


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(bundled_model(AGENT), tmp_path / "model"))


class Hub(JsonHandler):
    """The routes of a hub that a snapshot of a model asks; `files` are those of every model."""

    files: ClassVar[dict[str, bytes]] = {}
    given: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        reply: Any
        if "/tree/" in self.path:
            sizes = [{"path": name, "size": len(self.files[name])} for name in self.files]
            reply = [{"type": "file", "oid": COMMIT, **one} for one in sizes]
        elif self.path.startswith("/api/models/"):
            names = [{"rfilename": name} for name in self.files]
            reply = {"id": "a/b", "sha": COMMIT, "siblings": names}
        else:
            name = self.path.partition("/resolve/")[2].partition("/")[2]
            reply = self.files[name]
            if self.command == "GET":
                self.given.append(name)
        digest = hashlib.sha1(repr(reply).encode()).hexdigest()
        self.answer(reply, ETag=f'"{digest}"', X_Repo_Commit=COMMIT)

    do_HEAD = do_GET


def check_at_hub(files: dict[str, bytes], cache: Path) -> Ended:
    """Check the model `owner/name` of a hub that has these files."""
    Hub.files, Hub.given = files, []
    hub = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    place = {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_address[1]}", "HF_HOME": str(cache)}
    asks = "from training.setup.model_folder import check_model as c; c('owner/name')"
    with serving(hub):
        return python("-c", asks, env={**os.environ, **place, "HF_HUB_OFFLINE": "0"})


@pytest.mark.system
def test_of_a_hub_s_model_only_safetensors_and_texts_are_fetched(tmp_path):
    model = Path(bundled_model(AGENT))
    files = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    code = {"modeling.py": b"raise SystemExit(9)", "pytorch_model.bin": b"a pickle"}
    done = check_at_hub(files | code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "model.safetensors" in Hub.given
    assert not set(code) & set(Hub.given)


@pytest.mark.system
def test_a_hub_s_model_that_has_pickles_alone_is_refused(tmp_path):
    done = check_at_hub({"config.json": b"{}", "pytorch_model.bin": b"a pickle"}, tmp_path)
    assert not missing(done.stderr.splitlines()[-1], "owner/name", "safetensors")
    assert Hub.given == ["config.json"]


@pytest.mark.parametrize("name", ["/nowhere/model", "nowhere", "runs/nme"])
def test_a_missing_folder(name):
    with pytest.raises(ConfigError, match=name):
        check_model(name)


@pytest.mark.parametrize("name", ["sql_agent/tiny_model", "episodes/tiny_model/"])
def test_a_bundled_model_that_is_not_here_is_no_hub_id(name, tmp_path, monkeypatch):
    """As for the installed package, whose models lie beside it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as refused:
        check_model(name)
    assert not missing(str(refused.value), str(ROOT / name))


@pytest.mark.parametrize("folder", ["/elsewhere/", ""])
def test_of_an_agent_s_missing_model_the_command_that_makes_it_is_named(folder):
    with pytest.raises(ConfigError) as refused:
        check_model(f"{folder}triage_agent/tiny_model")
    assert not missing(str(refused.value), "training.cold_start triage", "hub id")


def test_a_number_for_each_layer_is_no_size_of_the_cache(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_key_value_heads": [2, 2, 1]}))
    assert cache_bytes(str(folder), 4, 1024, "float32") == CACHE_BYTES


def test_more_context_than_positions(folder):
    with pytest.raises(ConfigError, match=r"1,?000,?000"):
        check_model(str(folder), 1_000_000)


def hold(folder: Path, count: int) -> None:
    """Make the folder's file one of so many weights in 32 bit, as a run's is."""
    tensor = {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}
    head = json.dumps({"w": tensor}).encode()
    with (folder / "model.safetensors").open("wb") as large:
        large.write(len(head).to_bytes(8, "little") + head)
        large.truncate(8 + len(head) + 4 * count)


def test_a_model_of_the_hub_has_the_size_of_what_was_found(folder, tmp_path, monkeypatch):
    """13 checkpoints of a 7B model passed with 60 GB free, and a real model got a tiny one's preset."""
    monkeypatch.setattr("training.setup.model_folder._fetch", lambda model: folder)
    assert not is_large("owner/model")
    plan = plan_of(tmp_path, model="owner/model")
    check_disk(plan, 1)
    hold(folder, 2**41)
    for name in ("model.safetensors", "pytorch_model.bin"):
        (folder / "model.safetensors").rename(folder / name)
        assert is_large("owner/model")
        with pytest.raises(ConfigError, match="owner/model"):
            check_disk(plan, 1)


def test_an_adapter_is_trained_where_all_weights_have_no_room(folder, tmp_path, monkeypatch):
    hold(folder, 494_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=12e9))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=9e9))
    adapter = plan_of(tmp_path, model=str(folder), lora_rank=16)
    whole = plan_of(tmp_path, model=str(folder))
    check_memory(adapter)
    check_disk(adapter, 2)
    check_disk(whole, 1)
    with pytest.raises(ConfigError, match=r"17\.8.*12\.0"):
        check_memory(whole)
    with pytest.raises(ConfigError, match=r"9\.00.*15\.91"):
        check_disk(whole, 2)


INDEX = "model.safetensors.index.json"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
# The kinds of spoilt_models.jsonl: by the file that they write, and by a change of config.json
WRITTEN = {
    "pointer": ("model.safetensors", POINTER),
    "index no json": (INDEX, "<html>not found</html>"),
    "lost shard": (INDEX, '{"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}'),
    "config cut": ("config.json", '{"model_type": '),
    "config list": ("config.json", "[]"),
    "tokenizer cut": ("tokenizer.json", '{"version": '),
}
CHANGED: dict[str, dict[str, object]] = {
    "quantised": {"quantization_config": {"quant_method": "awq"}},
    "quantised in a word": {"quantization_config": "gptq"},
}


def spoil(folder: Path, kind: str) -> None:
    """Make the weights of a model folder as people bring them."""
    weights = folder / "model.safetensors"
    if kind in WRITTEN:
        name, text = WRITTEN[kind]
        (folder / name).write_text(text)
    elif kind in CHANGED:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | CHANGED[kind]))
    elif kind.startswith("without "):
        (folder / kind.removeprefix("without ")).unlink()
    elif kind == "cut":
        weights.write_bytes(weights.read_bytes()[:-1000])
    elif kind == "template of another encoding":
        (folder / "chat_template.jinja").write_bytes("{{ 'é' }}".encode("latin-1"))
    else:
        weights.unlink()
        if kind == "adapter":
            (folder / "adapter_config.json").write_text("{}")


@pytest.mark.parametrize(("kind", "named"), cases_of(__file__, "spoilt_models"))
def test_weights_that_cannot_be_used_are_named(kind, named, folder):
    """Each failed up to a minute later, in the engine's words."""
    check_model(str(folder), trained=True)
    spoil(folder, kind)
    with pytest.raises(ConfigError, match=named):
        check_model(str(folder), trained=True)
    if kind == "quantised":
        check_model(str(folder))  # it can be served


def test_a_run_s_processes_find_the_user_s_modules(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/own/agents", "/own/tools"]))
    path = device.environment("cpu")["PYTHONPATH"].split(os.pathsep)
    assert path[:3] == [str(ROOT), "/own/agents", "/own/tools"]


def test_a_user_without_a_name_gets_one(monkeypatch):
    """`docker run --user` gives such an id; torch's compiler then ended with a KeyError."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert "USER" not in device.environment("cuda")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert device.environment("cuda")["USER"] == "uid54321"


@pytest.mark.parametrize("torch", ["2.13.0+cpu", "2.11.0"])
@pytest.mark.parametrize("driver", [True, False])
def test_auto_means_a_gpu_only_where_torch_is_built_for_it(torch, driver, tmp_path, monkeypatch):
    """The README's first command has torch for the CPU on a machine with a GPU."""
    if driver:
        (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(device, "version", lambda name: torch)
    built = driver and not torch.endswith("+cpu")
    assert device.choose_device("auto") == ("cuda" if built else "cpu")


@pytest.mark.parametrize(
    ("torch", "asked", "lock"), [("2.13.0+cpu", "cuda", "gpu"), ("2.11.0", "cpu", "cpu")]
)
def test_each_lock_refuses_the_other_device(torch, asked, lock, monkeypatch):
    monkeypatch.setattr(device, "version", lambda name: torch)
    with pytest.raises(ConfigError) as refused:
        device.check_libraries(asked)
    assert not missing(str(refused.value), asked, torch, f"DEVICE={lock}", "./install.sh")
