"""The cold start: its command line, the tiny model built from nothing, and the warm-up of another (needs torch)."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from sql_agent.demonstrations import Conversation, tool_call
from sql_agent.prompts import TOOL, first_messages
from training.cold_start import main, parse_arguments
from training.tiny_tokenizer import render

TINY = ROOT / "sql_agent" / "tiny_model"
MODEL_FILES = {
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--steps-a", "0"], "--steps-a is 0"),
        (["--steps-b", "-1"], "--steps-b is -1"),
        (["--threads", "0"], "--threads is 0"),
        (["--base", "m", "--lr", "0"], "--lr is 0.0"),
        (["--base", "m", "--steps-a", "5"], "--steps-a has no use with --base"),
        (["--epochs", "1"], "--epochs has no use without --base"),
        (["--out", str(TINY)], "give --force"),
        (["--out", str(ROOT / "docs"), "--force"], "is no model folder"),
    ],
)
def test_wrong_usage_is_one_message(flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(["--out", "no/such/folder", *flags])
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


def test_each_mode_has_its_defaults() -> None:
    tiny, base = parse_arguments(["--out", "x-new"]), parse_arguments(["--out", "x-new", "--base", "m"])
    assert (tiny.steps_a, tiny.steps_b, tiny.lr) == (4500, 200, None)
    assert (base.steps_a, base.epochs, base.lr, base.batch_size) == (None, 2.0, 1e-5, 8)


@pytest.mark.engine
def test_a_missing_training_file_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path / "m"), "--train-file", str(tmp_path / "none.parquet")]) == 1
    assert "none.parquet" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def cold_start(*flags: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "training.cold_start", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.engine
def test_a_small_model_is_built_from_nothing_and_again_the_same(tmp_path: Path) -> None:
    for name in ("one", "two"):
        facts = cold_start("--out", str(tmp_path / name), "--steps-a", "12", "--steps-b", "3", "--no-measure")
        assert (facts["steps_a"], facts["steps_b"]) == (12, 3)
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two"}
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert files.keys() == MODEL_FILES
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}


@pytest.mark.engine
def test_another_model_is_warmed_up_on_gold_episodes(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    flags = ["--base", str(TINY), "--out", str(tmp_path / "warm"), "--lr", "1e-3", "--batch-size", "4"]
    facts = cold_start(*flags, "--max-steps", "6")
    assert facts["steps"] == 6
    assert facts["accuracy"] > 0.8
    assert {path.name for path in (tmp_path / "warm").iterdir()} == MODEL_FILES
    before, after = (AutoModelForCausalLM.from_pretrained(folder).state_dict() for folder in (TINY, tmp_path / "warm"))
    assert all(not value.equal(after[name]) for name, value in before.items() if value.ndim == 2)


@pytest.mark.engine
@pytest.mark.parametrize(("template", "told"), [("", "no chat template"), ("{{ messages | length }}", "differently")])
def test_a_model_that_cannot_chat_is_one_message(
    template: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(TINY)
    tokenizer.chat_template = template or None
    tokenizer.save_pretrained(tmp_path / "base")
    AutoModelForCausalLM.from_pretrained(TINY).save_pretrained(tmp_path / "base")
    assert main(["--base", str(tmp_path / "base"), "--out", str(tmp_path / "out")]) == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.engine
def test_a_base_that_is_not_there_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--base", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 1
    assert "cannot be loaded" in capsys.readouterr().err


CALL = '<tool_call>\n{"name": "query_database_by_sql", "arguments": {"sql": "SELECT 1"}}\n</tool_call><|im_end|>'


def conversation(learn: list[bool]) -> Conversation:
    turns = [tool_call("SELECT 1"), {"role": "tool", "content": "{}"}, {"role": "assistant", "content": "好"}]
    return Conversation([*first_messages("朵莎洛片怎么保存？"), *turns], learn)


def learned(tokenizer: Any, learn: list[bool]) -> list[str]:
    from training.supervised import NOT_LEARNED, encode

    examples = encode(conversation(learn), tokenizer)
    return [tokenizer.decode([label for label in e["labels"] if label != NOT_LEARNED]) for e in examples]


@pytest.mark.engine
def test_only_the_assistants_tokens_are_learned() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(TINY)
    assert learned(tokenizer, [True, True]) == [f"{CALL}好<|im_end|>"]
    assert learned(tokenizer, [False, True]) == ["好<|im_end|>"]


@pytest.mark.engine
def test_a_template_that_rewrites_earlier_turns_gives_an_example_a_turn() -> None:
    """Qwen3's writes an empty thought before the last reply and drops it from the turns before."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(TINY)
    mark = "'<|im_start|>assistant\\n' ~ "
    assert mark in tokenizer.chat_template
    tokenizer.chat_template = tokenizer.chat_template.replace(
        mark, mark + "('<think></think>' if loop.last else '') ~ "
    )
    assert learned(tokenizer, [True, True]) == [f"<think></think>{CALL}", "<think></think>好<|im_end|>"]


@pytest.mark.engine
def test_the_loss_is_that_of_the_learned_tokens(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments

    from training.supervised import Collator, Course, Pace, SupervisedTrainer, encode

    tokenizer, model = AutoTokenizer.from_pretrained(TINY), AutoModelForCausalLM.from_pretrained(TINY).float()
    batch = Collator(tokenizer.pad_token_id)(
        [e for learn in ([True, True], [False, True]) for e in encode(conversation(learn), tokenizer)]
    )
    pace = Pace(Course("x", 1, 1, 2, 1))
    trainer = SupervisedTrainer(pace, model=model, args=TrainingArguments(output_dir=str(tmp_path), use_cpu=True))
    expected = model(**batch).loss
    torch.testing.assert_close(trainer.compute_loss(model, dict(batch)), expected)
    assert 0 <= pace.accuracy <= 1


@pytest.mark.engine
def test_a_schedulers_rate_reaches_both_optimizers() -> None:
    import torch

    from training.supervised import Together

    left, right = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))
    both = Together([torch.optim.SGD([left], lr=1.0), torch.optim.SGD([right], lr=10.0)])
    scheduler = torch.optim.lr_scheduler.LambdaLR(both, lambda step: 0.5)
    both.load_state_dict(both.state_dict())  # as accelerate does; it replaces the groups
    left.grad, right.grad = torch.ones(1), torch.ones(1)
    both.step()
    scheduler.step()
    assert (left.item(), right.item()) == (-0.5, -5.0)


@pytest.mark.engine
def test_training_slows_down_at_mastery_and_stops() -> None:
    from transformers import TrainerControl, TrainerState

    from training.supervised import WINDOW, Course, Pace

    pace, control = Pace(Course("x", 1000, 100, 8, warm_up=10, target=0.9)), TrainerControl()
    assert [pace.factor(step) for step in (0, 9, 10, 899, 950, 1000)] == [0.1, 1, 1, 1, 0.5, 0]
    pace.losses.append(1.0)
    for step in range(1, 301):
        pace.accuracies.append(0.95 if step > 100 else 0.5)
        pace.on_step_end(None, TrainerState(global_step=step), control)
        if control.should_training_stop:
            break
    mastered = next(n for n in range(WINDOW + 1) if 0.5 * (WINDOW - n) + 0.95 * n >= 0.9 * WINDOW)
    assert (pace.slow_from, step) == (100 + mastered, 200 + mastered)
    assert pace.course.target < math.inf


@pytest.mark.engine
def test_alike_batches_hold_every_example_once() -> None:
    from training.supervised import AlikeSampler

    lengths = [10 * (i % 5) for i in range(40)]
    order = list(AlikeSampler(lengths, 8, seed=1))
    assert sorted(order) == list(range(40))
    assert all(len({lengths[i] for i in order[at : at + 8]}) == 1 for at in range(0, 40, 8))
    assert order != list(AlikeSampler(lengths, 8, seed=2))


def test_the_bundled_models_card_says_what_was_measured() -> None:
    facts, card = json.loads((TINY / "cold_start.json").read_text()), (TINY / "README.md").read_text(encoding="utf-8")
    assert facts["start"] < facts["ceiling"] <= 100
    assert facts["questions"] == 320
    assert facts["start_by_type"].keys() == facts["ceiling_by_type"].keys()
    assert f"**{facts['start']}**" in card
    assert f"**{facts['ceiling']}**" in card
    assert facts["command"] in card
    assert "Not for patients" in card
    assert "$" not in card


@pytest.mark.engine
def test_transformers_renders_the_template_as_we_do() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(TINY)
    messages = [*first_messages("朵莎洛片怎么保存？"), tool_call("SELECT '片'"), {"role": "tool", "content": "{}"}]
    theirs = tokenizer.apply_chat_template(messages, tools=[TOOL], tokenize=False, add_generation_prompt=True)
    assert theirs == render(messages, [TOOL], add_generation_prompt=True)
    assert tokenizer.eos_token == "<|im_end|>"
