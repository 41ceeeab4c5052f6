"""The cold start: its command line, a tiny model from nothing, and the warm-up of another."""

import json
import shutil
import signal
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from common.command import UsageError
from common.files import locked
from common.settings import ROOT, load_settings
from episodes import registry
from episodes.episode import Conversation
from sql_agent.prompts import TOOL, first_messages
from tests.corpora import cases_of, write_lines
from tests.digits_agent.agent import AGENT as DIGITS
from tests.messages import missing
from training.cold_start import main
from training.warmup import supervised
from training.warmup.examples import NOT_LEARNED, ColdStartError, batches, encode, groups_of
from training.warmup.steps import PreciseAdamW, uninterrupted
from training.warmup.supervised import learn_padded, learn_trees, save, warm_up

pytestmark = pytest.mark.system
TINY = ROOT / "sql_agent" / "tiny_model"
MODEL_FILES = {path.name for path in TINY.iterdir()} - {"README.md", "cold_start.json"}


@pytest.fixture
def digits(monkeypatch):
    """An agent without tools, and without imperfect lessons."""
    monkeypatch.setitem(registry._registered, "digits", DIGITS)
    return "digits"


def cold_start(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    code = main(flags)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return dict(json.loads(captured.out))


@pytest.mark.parametrize(("flags", "named"), cases_of(__file__, "nothing_to_learn"))
@pytest.mark.usefixtures("digits")
def test_what_cannot_be_learned_from_is_one_message(flags, named, tmp_path, capsys):
    assert main([*flags, "--out", str(tmp_path / "m")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert named in line
    assert list(tmp_path.iterdir()) == []


def test_an_empty_base_makes_no_model_from_nothing(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["sql", "--base", "", "--out", "m"])
    assert main(["sql", "--base", str(TINY), "--out", "/dev/null/m"]) == 2
    assert not missing(capsys.readouterr().err, "--base", "--out")


def test_a_base_whose_template_leaves_out_the_system_prompt_is_refused(tmp_path, capsys):
    base = shutil.copytree(TINY, tmp_path / "base")
    (base / "chat_template.jinja").write_text("{{ messages | length }}")
    assert main(["sql", "--base", str(base), "--out", str(tmp_path / "out")]) == 1
    assert "system" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_agent_without_tools_has_a_tiny_model_too(digits, tmp_path, capsys):
    for name in ("one", "two"):
        facts = cold_start(capsys, digits, "--out", str(tmp_path / name), "--steps-a", "10")
        assert (facts["steps_a"], facts["steps_b"]) == (10, 0)
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two"}
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert files.keys() == MODEL_FILES
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    config = json.loads(files["config.json"])
    assert config["max_position_embeddings"] == 256
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"]
    tokenizer = json.loads(files["tokenizer_config.json"])
    assert tokenizer["tokenizer_class"] == "PreTrainedTokenizerFast"

    adapted = ("--base", str(tmp_path / "one"), "--out", str(tmp_path / "adapted"))
    cold_start(capsys, digits, *adapted, "--lr", "3e-3", "--lora-rank", "4")
    assert {path.name for path in (tmp_path / "adapted").iterdir()} == MODEL_FILES
    before = load_file(tmp_path / "one" / "model.safetensors")
    after = load_file(tmp_path / "adapted" / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all("proj" in name for name in changed)  # an adapter is on linear layers alone


def stopped_in(step: int, real: Callable[..., float]) -> tuple[Callable[..., float], list[Any]]:
    """Return a step of learning that Ctrl-C meets at the given call, and the calls so far."""
    steps: list[Any] = []

    def stopped(*arguments: Any) -> float:
        steps.append(arguments)
        if len(steps) == step:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    return stopped, steps


def test_a_stopped_cold_start_goes_on_and_gives_the_same_model(
    digits, tmp_path, monkeypatch, capsys
):
    flags = ("--steps-a", "12")
    cold_start(capsys, digits, "--out", str(tmp_path / "whole"), *flags)
    stopped, steps = stopped_in(9, supervised.learn_padded)
    monkeypatch.setattr(supervised.train, "__defaults__", (stopped, None))
    assert main([digits, "--out", str(tmp_path / "out"), *flags]) == 130
    assert not missing(capsys.readouterr().err, "8 steps are kept", "goes on", "12 steps")
    with monkeypatch.context() as others:  # as of other tables, by a setting
        others.setattr("training.warmup.tiny_model.BARE_SHARE", 1.0)
        assert main([digits, "--out", str(tmp_path / "out"), *flags]) == 2
    assert "other lessons" in capsys.readouterr().err
    cold_start(capsys, digits, "--out", str(tmp_path / "out"), *flags)
    assert len(steps) == 13
    assert not (tmp_path / "out.training").exists()
    weights = [tmp_path / name / "model.safetensors" for name in ("whole", "out")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_doctor_is_warmed_up_on_dialogues_and_a_patient_on_the_record_patients(
    digits, tmp_path, capsys
):
    cold_start(capsys, digits, "--out", str(tmp_path / "base"), "--steps-a", "2")
    config = tmp_path / "base" / "config.json"
    positions = {"max_position_embeddings": 4096}
    config.write_text(json.dumps(json.loads(config.read_text()) | positions))
    texts = ("膝盖疼。", "<answer>问题：摔过吗？</answer>", "摔了。")
    texts += ("<answer>诊断：扭伤\n建议：冰敷</answer>",)
    roles = ("user", "assistant") * 2
    turns = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    dialogues = write_lines(tmp_path / "dialogues.jsonl", [{"messages": turns}])
    base = ("consultation", "--base", str(tmp_path / "base"), "--out")
    told = ("--dialogues", str(dialogues))
    assert cold_start(capsys, *base, str(tmp_path / "doctor"), *told)["steps"] == 2
    agent = registry.get("consultation")
    file = write_lines(tmp_path / "rows.jsonl", agent.rows(agent.splits["val"])[:3])
    rows = ("--train-file", str(file), "--role", "patient", "--batch-size=1", "--demonstrations=2")
    assert cold_start(capsys, *base, str(tmp_path / "patient"), *rows)["steps"] == 4


CALL = '<tool_call>\n{"name": "query_database_by_sql", "arguments": {"sql": "SELECT 1"}}\n</tool_call><|im_end|>'


def conversation(learn: list[bool]) -> Conversation:
    function = {"name": TOOL["function"]["name"], "arguments": '{"sql": "SELECT 1"}'}
    calls = [{"type": "function", "function": function}]
    call = {"role": "assistant", "content": None, "tool_calls": calls}
    turns = [call, {"role": "tool", "content": "{}"}, {"role": "assistant", "content": "好"}]
    return Conversation([*first_messages("朵莎洛片怎么保存？"), *turns], learn, (TOOL,))


def learned(tokenizer: Any, learn: list[bool]) -> list[str]:
    texts = []
    for example in encode(conversation(learn), tokenizer):
        texts.append(tokenizer.decode([one for one in example["labels"] if one != NOT_LEARNED]))
    return texts


def test_only_the_assistants_tokens_are_learned():
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    assert learned(tokenizer, [True, True]) == [f"{CALL}好<|im_end|>"]
    assert learned(tokenizer, [False, True]) == ["好<|im_end|>"]


class Pairs:
    """A tokenizer whose tokens are two characters each, wherever a turn ends."""

    def __call__(self, text: str, **options: Any) -> dict[str, list[Any]]:
        offsets = [(at, min(at + 2, len(text))) for at in range(0, len(text), 2)]
        return {"input_ids": [ord(text[left]) for left, _ in offsets], "offset_mapping": offsets}


def test_a_token_across_a_turn_s_border_is_not_learned():
    """What the model generates begins and ends with a token; of these, half is another's text."""
    roles, texts = ("user", "assistant") * 2, ("abc", "defg", "hi", "jkl")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    told = Conversation(messages, [True, True], raw=True)
    [example] = encode(told, Pairs())
    assert "".join(map(chr, example["input_ids"])) == "acegik"
    learned = [chr(label) for label in example["labels"] if label != NOT_LEARNED]
    assert learned == ["e", "k"]


def test_weights_are_written_in_bfloat16(tmp_path):
    """float16 has other numbers: of small weights it keeps none."""
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.fill_(1e-30)
    save(model, tokenizer, tmp_path)
    written = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in written.values()} == {torch.bfloat16}
    assert all(bool(tensor.all()) for tensor in written.values())
    mode = (tmp_path / "model.safetensors").stat().st_mode
    assert mode & 0o044 == 0o044, "others may read it as they may the tokenizer"


def test_a_template_that_rewrites_earlier_turns_gives_an_example_a_turn():
    """Qwen3's writes an empty thought before the last reply and drops it from the turns before."""
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    mark = "'<|im_start|>assistant\\n' ~ "
    assert mark in tokenizer.chat_template
    thinks = mark + "('<think></think>' if loop.last else '') ~ "
    tokenizer.chat_template = tokenizer.chat_template.replace(mark, thinks)
    turns = [f"<think></think>{CALL}", "<think></think>好<|im_end|>"]
    assert learned(tokenizer, [True, True]) == turns


@pytest.mark.parametrize("rank", [0, 2])
def test_a_stopped_warm_up_goes_on_and_ends_with_the_weights_of_a_whole_one(
    tmp_path, monkeypatch, capsys, rank
):
    """Ctrl-C in the third step. Others and two at once are refused; --force goes on with the same."""
    taught = [conversation([True, True])]
    given: dict[str, Any] = {"batch_size": 1, "seed": 3, "lora_rank": rank}
    whole, out = tmp_path / "whole", tmp_path / "out"
    warm_up(str(TINY), taught, whole, 6, 0.01, **given)
    stopped, steps = stopped_in(3, supervised.learn_trees)
    monkeypatch.setattr(supervised, "learn_trees", stopped)
    with pytest.raises(KeyboardInterrupt):
        warm_up(str(TINY), taught, out, 6, 0.01, **given)
    assert not out.exists()
    work = tmp_path / "out.training"
    kept = {file.name: file.read_bytes() for file in work.iterdir()}
    for name, text in ("progress.pt", ""), ("begun.json", "{}"), ("begun.json", None):
        (work / name).unlink()
        if text is not None:
            (work / name).write_text(text)
        with pytest.raises(UsageError, match=r"out\.training"):
            warm_up(str(TINY), taught, out, 6, 0.01, **given)
        (work / name).write_bytes(kept[name])
    with pytest.raises(UsageError) as refused:
        warm_up(str(TINY), taught * 2, out, 6, 0.01, **given)
    assert not missing(str(refused.value), "out.training", "examples", "--force")
    with locked(work), pytest.raises(UsageError, match="another command"):
        warm_up(str(TINY), taught, out, 6, 0.01, **given)
    capsys.readouterr()
    facts = warm_up(str(TINY), taught, out, 6, 0.01, **given, anew=True)
    assert not missing(capsys.readouterr().err, "after step 2")
    assert (facts["steps"], len(steps), work.exists()) == (6, 7, False)
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_ctrl_c_in_an_update_waits_for_its_end():
    done = []

    def update() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("the whole update")

    with pytest.raises(KeyboardInterrupt):
        update()
    assert done


def test_examples_over_the_models_context_are_left_out(tmp_path, capsys):
    """It has no positions for them: what they teach is noise, and the longest fills the memory."""
    short = conversation([True, True])
    long = replace(short, messages=[short.messages[0], *short.messages])
    [fits] = encode(short, AutoTokenizer.from_pretrained(TINY))
    base = shutil.copytree(TINY, tmp_path / "base")
    config = json.loads((base / "config.json").read_text())
    positions = {"max_position_embeddings": len(fits["input_ids"])}
    (base / "config.json").write_text(json.dumps(config | positions))
    given: dict[str, Any] = {"epochs": 1, "lr": 1e-3, "batch_size": 2, "seed": 0}
    facts = warm_up(str(base), [long, long, short, short], tmp_path / "both", **given, most=1)
    assert facts["steps"] == 1
    assert "1 examples of 3" in capsys.readouterr().err
    warm_up(str(base), [short], tmp_path / "short", **given)
    both, alone = (load_file(tmp_path / name / "model.safetensors") for name in ("both", "short"))
    assert all(both[name].equal(weights) for name, weights in alone.items())
    with pytest.raises(ColdStartError, match="none of 1"):
        warm_up(str(base), [long], tmp_path / "none", **given)


@pytest.fixture
def warmed_up_on(monkeypatch):
    """The first conversation of each warm-up; nothing is trained."""
    first: list[Conversation] = []

    def warm_up(_: str, conversations: Iterable[Conversation], *__: Any, **___: Any) -> Any:
        first.append(next(iter(conversations)))
        return {}

    monkeypatch.setattr(supervised, "warm_up", warm_up)
    return first


def test_a_warm_up_learns_episodes_of_the_budget_that_a_run_has(
    tmp_path, monkeypatch, warmed_up_on
):
    """A doctor who was taught to end after fewer turns would not use those of the run."""
    flags = ("--base", str(TINY), "--out", str(tmp_path / "out"))
    assert main(["consultation", *flags]) == main(["diagnosis", *flags]) == 0
    monkeypatch.setenv("MAX_TURNS", "5")
    load_settings.cache_clear()
    assert main(["consultation", *flags]) == 0
    said = [told.messages[1]["content"].splitlines()[-1] for told in warmed_up_on]
    assert said == ["第1轮，共6轮。", "Turn 1 of 6.", "第1轮，共5轮。"]


@pytest.mark.parametrize("count", [1, 8, 9, 15, 24])
def test_every_demonstration_is_learned(count):
    lessons = [{"input_ids": [number], "labels": [number]} for number in range(count)]
    groups = groups_of(lessons, 8, Random(0))
    assert sorted(one["input_ids"][0] for group in groups for one in group) == [*range(count)]
    assert max(map(len, groups)) <= 8


@pytest.mark.parametrize("tokens", [2048, 40], ids=["one tree", "several"])
def test_shared_beginnings_are_computed_once_and_change_nothing(tokens, monkeypatch):
    monkeypatch.setattr(supervised, "TREE_TOKENS", tokens)
    monkeypatch.setattr(supervised, "HEAD_ROWS", 3)
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    lessons = [conversation(learn) for learn in ([True, True], [False, True], [True, False])]
    examples = [example for lesson in lessons for example in encode(lesson, tokenizer)]
    (batch,) = batches(examples, 3, tokenizer.pad_token_id, Random(0))
    found = []
    ways: list[tuple[Any, Any]] = [(learn_padded, batch), (learn_trees, examples)]
    for learn, data in ways:
        model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
        accuracy = learn(model, data)
        found.append((accuracy, [weight.grad for weight in model.parameters()]))
    (accuracy, gradients), (of_trees, gradients_of_trees) = found
    assert of_trees == pytest.approx(accuracy)
    torch.testing.assert_close(gradients_of_trees, gradients, rtol=1e-3, atol=1e-5)


def test_small_updates_of_weights_in_bfloat16_are_not_lost():
    """A step of 1e-5 is less than bfloat16 can add to 1."""
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    optimizer = PreciseAdamW(weight, lr=1e-5)
    for _ in range(1000):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    assert weight.item() == pytest.approx(1 - 0.01, abs=0.005)


@pytest.mark.parametrize(
    ("short", "memory", "needed"),
    [(True, 1e9, "17.5 GB"), (False, 1e9, "19.0 GB"), (True, 1e12, "14.0 GB of disk")],
)
def test_a_warm_up_that_does_not_fit_the_machine_is_refused_before_it(
    short, memory, needed, tmp_path, monkeypatch, capsys, digits
):
    monkeypatch.setattr(supervised, "count_weights", lambda _: 10**9)
    monkeypatch.setattr(supervised, "is_large", lambda _: True)
    monkeypatch.setattr(supervised, "in_bfloat16", lambda _: short)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=memory))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1e9))
    monkeypatch.setattr(supervised, "load_model", None)  # before the model is loaded
    assert main([digits, "--base", str(TINY), "--out", str(tmp_path / "out")]) == 1
    assert not missing(capsys.readouterr().err, "1.0 GB", needed, "--lora-rank")
