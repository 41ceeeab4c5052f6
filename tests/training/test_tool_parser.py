"""vLLM's parser of tool calls is the one that reads a call as the model's own template writes it."""

import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.settings import ROOT
from tests.corpora import cases_of, public_template
from tests.messages import missing
from training.setup import reading, tool_parser
from training.setup.model_folder import read_template
from training.setup.plan import ConfigError
from training.setup.tool_parser import find_parser, readers, rendered_call

TINY = str(ROOT / "sql_agent" / "tiny_model")
OPENING = """{%- for m in messages %}<|im_start|>{{ m.role }}
{% if tools and loop.first %}{{ tools | tojson }}{% endif %}"""
CLOSING = """{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
CALLS = "{%% for c in m.tool_calls or [] %%}{%% set f = c.function %%}%s{%% endfor %%}"
IN_WORDS = "{% if m.tool_calls %}please use {{ m.tool_calls[0].function.name }}{% endif %}"


def test_the_form_of_hermes_is_known_without_vllm(monkeypatch):
    monkeypatch.setattr(tool_parser.subprocess, "run", lambda *_, **__: pytest.fail("asked vLLM"))
    assert find_parser(TINY, read_template(TINY)) == "hermes"


def test_a_parser_that_is_not_found_in_time_is_asked_for(monkeypatch):
    """The traceback of TimeoutExpired named no way out."""
    monkeypatch.setattr(tool_parser, "SECONDS", 0.01)
    with pytest.raises(ConfigError, match=r"no answer in 0.01 s.*--tool-parser"):
        find_parser(TINY, OPENING + IN_WORDS + CLOSING)


def model_of(folder: Path, kind: str, tokens: list[str]) -> Path:
    """A model of this type whose tokenizer has these special tokens, too."""
    shutil.copytree(TINY, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": kind}))
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    added = tokenizer["added_tokens"]
    first = 1 + max(*tokenizer["model"]["vocab"].values(), *(one["id"] for one in added))
    for id, content in enumerate(tokens, first):
        added.append({**added[-1], "id": id, "content": content, "special": True})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


@pytest.fixture(scope="module")
def other_process():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def one_import_of_vllm(other_process, monkeypatch):
    """One process reads the calls of all families, where the product starts one for each."""

    def run(command: list[str], input: str, **_: object) -> SimpleNamespace:
        names = other_process.submit(readers, Path(command[-1]), input).result()
        return SimpleNamespace(returncode=0, stdout=f"{' '.join(names)}\n")

    monkeypatch.setattr(tool_parser, "subprocess", SimpleNamespace(run=run))


@pytest.mark.system
@pytest.mark.usefixtures("one_import_of_vllm")
@pytest.mark.parametrize(
    ("name", "kind", "tokens", "parser", "form"), cases_of(__file__, "written_calls")
)
def test_the_parser_reads_calls_as_templates_write_them(name, kind, tokens, parser, form, tmp_path):
    """A case without a form is a public template that TRL ships."""
    template = OPENING + CALLS % form + CLOSING if form else public_template(name)
    model = model_of(tmp_path / "model", kind, tokens)
    assert find_parser(str(model), template) == parser


def test_a_public_template_that_cannot_render_a_call_is_named():
    with pytest.raises(ConfigError, match="chat_template=FILE"):
        find_parser(TINY, public_template("deepseekv3"))


@pytest.mark.system
def test_a_form_that_no_parser_reads_is_named_before_anything_is_loaded():
    template = OPENING + IN_WORDS + CLOSING
    assert rendered_call(template) == "please use look"
    with pytest.raises(ConfigError, match=r"please use look.*--tool-parser"):
        find_parser(TINY, template)


SWITCHED = OPENING + CLOSING.replace(
    "assistant\n", "assistant\n{% if enable_thinking is false %}<think></think>{% endif %}"
)


@pytest.mark.parametrize(("thinking", "told"), [(False, True), (True, False)])
def test_thinking_is_off_unless_it_is_asked_for(thinking, told, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "read_template", lambda *_: SWITCHED)
    flags = reading.reading_flags(TINY, tmp_path / "log", tools=False, thinking=thinking)
    assert ("--default-chat-template-kwargs" in flags) is told


def test_a_user_names_another_parser(tmp_path):
    flags = reading.reading_flags(TINY, tmp_path / "log", tools=True, tool_parser="pythonic")
    assert flags == ["--enable-auto-tool-choice", "--tool-call-parser", "pythonic"]


def test_thinking_needs_a_template_that_can_turn_it_off(monkeypatch):
    with pytest.raises(ConfigError, match="enable_thinking"):
        reading.thought_tokens(TINY, True)
    with pytest.raises(ConfigError, match="enable_thinking"):
        reading.reading_flags(TINY, Path(), tools=True, thinking=True)
    monkeypatch.setattr(reading, "read_template", lambda *_: SWITCHED)
    assert reading.thought_tokens(TINY, True) == reading.THOUGHT_TOKENS


def test_a_model_whose_replies_would_never_end_is_named(tmp_path):
    """A base model with a chat template: all episodes were cut at their limit, exit code 0."""
    folder = Path(shutil.copytree(TINY, tmp_path / "model"))
    reading.check_end(str(folder), read_template(TINY))
    for name in ("config.json", "generation_config.json"):
        settings = json.loads((folder / name).read_text()) | {"eos_token_id": 0}
        (folder / name).write_text(json.dumps(settings))
    told = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(told | {"eos_token": "<|endoftext|>"}))
    with pytest.raises(ConfigError) as refused:
        reading.check_end(str(folder), read_template(TINY))
    assert not missing(str(refused.value), folder, "<|im_end|>", "<|endoftext|>", "eos_token_id")
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')  # as of a newer library
    with pytest.raises(ConfigError, match=r"tokenizer\.json cannot be read"):
        reading.check_end(str(folder), read_template(TINY))


def test_ends_of_a_model_are_tokens_whatever_else_its_files_say(tmp_path):
    """Some write a token's number as text. A vocabulary may hold the empty text."""
    (tmp_path / "config.json").write_text('{"eos_token_id": "2"}')
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": null}')
    tokenizer = SimpleNamespace(token_to_id={"": 9, "</s>": 3}.get)
    assert reading.end_tokens(tmp_path, tokenizer) == {2}
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "</s>"}}')
    assert reading.end_tokens(tmp_path, tokenizer) == {2, 3}
