"""The cold start: its command line, a tiny model built from nothing, and the warm-up of another
(needs torch).
"""

from __future__ import annotations

import json
import math
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from common.settings import ROOT, Settings, load_settings
from episodes import new, registry
from episodes.agent import Agent, Environment, Lessons, Options, Row, Sizes, Teaching
from episodes.episode import AgentError, Conversation, Task
from evaluation.evaluate import parse_arguments as evaluation_arguments
from sql_agent.agent import AGENT
from sql_agent.prompts import TOOL, first_messages
from training.cold_start import command_for_card, main, parse_arguments
from training.warmup import supervised, tiny_model
from training.warmup.cold_start_card import card, headline_of, measure
from training.warmup.supervised import (
    ASKED_EVERY,
    NOT_LEARNED,
    WINDOW,
    ColdStartError,
    Schedule,
    adapter,
    batches,
    encode,
    loss_of,
    save,
    train,
    warm_up,
)
from training.warmup.tiny_tokenizer import make_tokenizer

TINY = ROOT / "sql_agent" / "tiny_model"
MODEL_FILES = {
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


def echoed(row: Row) -> Conversation:
    system = [{"role": "system", "content": "说一遍。"}] if row["system"] else []
    turns = [
        {"role": "user", "content": row["word"]},
        {"role": "assistant", "content": row["word"]},
    ]
    return Conversation([*system, *turns], [True])


class EchoTeaching(Teaching):
    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        if role == "parrot":
            return [replace(echoed(row), raw=True) for row in rows]
        if role != "policy":
            return super().demonstrations(role, rows, settings)
        return [echoed(row) for row in rows]

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        taught = [echoed(random.choice(rows)) for _ in range(right)]
        return Lessons(taught, [], "", {"words": len(rows)})


class EchoAgent(Agent):
    """Repeats a character of the question: no tools, no system prompt where the row has none,
    nothing imperfect.
    """

    name = "echo"
    prompt_version = "7"
    splits: ClassVar = {"train": Path("echo.jsonl")}
    teaching = EchoTeaching()

    def sizes(self, device: str) -> Sizes:
        return Sizes(prompt=40, response=24, reply=12)

    def rows(self, path: Path | str) -> list[Row]:
        if Path(path) != self.splits["train"]:
            raise AgentError(f"{path} is no file of echoes")
        return [
            {"id": str(i), "word": word, "system": i % 2}
            for i, word in enumerate("甲乙丙丁戊己庚辛")
        ]

    def task(self, row: Row, settings: Settings) -> Task:
        return Task(id=row["id"], question=row["word"])

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        raise NotImplementedError


class QuotingTeaching(EchoTeaching):
    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        return replace(super().lessons(rows, settings, right, flawed, random), apart=True)


class QuotingAgent(EchoAgent):
    """Copies names from prose into quotes."""

    teaching = QuotingTeaching()


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(registry._registered, "echo", EchoAgent())
    return "echo"


def cold_start(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    code = main(flags)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return dict(json.loads(captured.out))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--steps-a", "0"], "--steps-a: expected a number above 0, got '0'"),
        (["--base", "m", "--lr", "0"], "--lr: expected a number above 0, got '0'"),
        (["--base", "m", "--steps-a", "5"], "--steps-a has no use with --base"),
        (["--epochs", "1"], "--epochs has no use without --base"),
        (["--dialogues", "f"], "--dialogues has no use without --base"),
        (
            ["--base", "m", "--dialogues", "f", "--role", "policy"],
            "--dialogues has no use for --role or --train-file",
        ),
        (
            ["--base", "m", "--dialogues", "f", "--train-file", "t"],
            "--dialogues has no use for --role",
        ),
        (["--out", str(TINY)], "give --force"),
        (["--out", str(ROOT / "docs"), "--force"], "is no model folder"),
        (["other"], "unrecognized arguments: other"),
    ],
)
def test_wrong_usage_is_one_message(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(["sql", "--out", "no/such/folder", *flags])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("flags", [("--base", "m"), ("--role", "doctor")])
def test_the_bundled_model_is_not_replaced_by_one_of_another_kind(
    flags: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["sql", "--force", *flags])
    assert "--out is needed with --base or --role" in capsys.readouterr().err


def test_each_mode_has_its_defaults() -> None:
    tiny, base = (
        parse_arguments(["sql", "--out", "x-new"]),
        parse_arguments(["sql", "--out", "x-new", "--base", "m"]),
    )
    assert (tiny.steps_a, tiny.steps_b, tiny.measure) == (6500, 200, True)
    assert (base.role, base.epochs, base.lr, base.batch_size) == ("policy", 2.0, 1e-5, 8)


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["sql", "--train-file", "none.parquet"], 2, "none.parquet"),
        (["echo", "--no-measure", "--train-file", "other.jsonl"], 2, "is no file of echoes"),
        (
            ["sql", "--base", str(TINY), "--role", "doctor"],
            2,
            "no demonstrations for the role 'doctor'",
        ),
        (["sql", "--role", "doctor"], 2, "no demonstrations for the role 'doctor'"),
        (["sql", "--base", "no/such/model"], 1, "cannot be loaded"),
        (["sql", "--base", str(TINY), "--dialogues", "f"], 2, "f can not be read"),
        (
            ["consultation", "--base", str(TINY), "--dialogues", "none.jsonl"],
            2,
            "none.jsonl can not be read",
        ),
    ],
)
@pytest.mark.usefixtures("echo")
def test_what_cannot_be_learned_from_is_one_message(
    flags: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*flags, "--out", str(tmp_path / "m")]) == code
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_agent_without_tools_has_a_tiny_model_too(
    echo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        facts = cold_start(
            capsys, echo, "--out", str(tmp_path / name), "--steps-a", "30", "--no-measure"
        )
        assert (facts["steps_a"], facts["steps_b"], facts["words"], facts["prompt_version"]) == (
            30,
            0,
            8,
            "7",
        )
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two"}
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert files.keys() == MODEL_FILES
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    assert json.loads(files["config.json"])["max_position_embeddings"] == 64

    warm = cold_start(
        capsys,
        echo,
        "--base",
        str(tmp_path / "one"),
        "--out",
        str(tmp_path / "warm"),
        "--lr",
        "3e-3",
    )
    assert warm["steps"] == 2
    assert {path.name for path in (tmp_path / "warm").iterdir()} == MODEL_FILES
    adapted = ("--base", str(tmp_path / "one"), "--out", str(tmp_path / "adapted"))
    cold_start(capsys, echo, *adapted, "--lr", "3e-3", "--lora-rank", "4")
    assert {path.name for path in (tmp_path / "adapted").iterdir()} == MODEL_FILES
    before, after = (
        load_file(tmp_path / name / "model.safetensors") for name in ("one", "adapted")
    )
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all("proj" in name for name in changed)  # an adapter is on linear layers alone


def test_a_doctor_is_warmed_up_on_dialogues_and_a_patient_on_the_record_patients(
    echo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cold_start(capsys, echo, "--out", str(tmp_path / "base"), "--steps-a", "2", "--no-measure")
    settings = json.loads((tmp_path / "base" / "config.json").read_text()) | {
        "max_position_embeddings": 4096
    }
    (tmp_path / "base" / "config.json").write_text(json.dumps(settings))
    texts = [
        "膝盖疼。",
        "<answer>问题：摔过吗？</answer>",
        "摔了。",
        "<answer>诊断：扭伤\n建议：冰敷</answer>",
    ]
    turns = [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)
    ]
    (tmp_path / "dialogues.jsonl").write_text(json.dumps({"messages": turns}), encoding="utf-8")
    base = ("consultation", "--base", str(tmp_path / "base"), "--out")
    doctor = cold_start(
        capsys, *base, str(tmp_path / "doctor"), "--dialogues", str(tmp_path / "dialogues.jsonl")
    )
    assert doctor["steps"] == 1
    agent = registry.get("consultation")
    (tmp_path / "rows.jsonl").write_text(
        json.dumps(agent.rows(agent.splits["val"])[0]), encoding="utf-8"
    )
    rows = ("--train-file", str(tmp_path / "rows.jsonl"), "--role", "patient", "--epochs", "0.1")
    assert cold_start(capsys, *base, str(tmp_path / "patient"), *rows)["steps"] == 1


@pytest.mark.engine
def test_the_sql_agents_tiny_model_is_built_from_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tiny"
    facts = cold_start(
        capsys, "sql", "--out", str(out), "--steps-a", "12", "--steps-b", "3", "--no-measure"
    )
    of_bundled = json.loads((TINY / "cold_start.json").read_text())[
        "patterns"
    ]  # it was made from these rows
    assert (facts["steps_a"], facts["steps_b"], facts["patterns"]) == (12, 3, of_bundled)
    made, bundled = (json.loads((folder / "config.json").read_text()) for folder in (out, TINY))
    assert {**made, "vocab_size": 0} == {**bundled, "vocab_size": 0}
    # Words that only later conversations have are missing after so few steps.
    assert bundled["vocab_size"] - 20 < made["vocab_size"] <= bundled["vocab_size"]


@pytest.mark.engine
def test_another_model_is_warmed_up_on_gold_episodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [
        "--base",
        str(TINY),
        "--out",
        str(tmp_path / "warm"),
        "--lr",
        "1e-3",
        "--batch-size",
        "4",
    ]
    facts = cold_start(capsys, "sql", *flags, "--epochs", "0.025")
    assert facts["steps"] == 6
    assert facts["accuracy"] > 0.8
    before, after = (
        AutoModelForCausalLM.from_pretrained(folder).state_dict()
        for folder in (TINY, tmp_path / "warm")
    )
    assert all(not value.equal(after[name]) for name, value in before.items() if value.ndim == 2)


def test_a_name_has_the_same_tokens_behind_a_space_as_in_quotes_where_spaces_stand_apart() -> None:
    told = [Conversation([{"role": "user", "content": 'Count aspirin in "aspirin".'}], [])]
    joined, apart = (
        make_tokenizer(told, "", 64, Random(1), 2048, apart=apart).tokenize(' aspirin "aspirin"')
        for apart in (False, True)
    )
    assert apart[1 : apart.index('"') - 1] == apart[apart.index('"') + 1 : -1] != []
    assert joined[0].startswith(
        "Ġa"
    )  # what the rule is for: else the first token has the space in it


def test_a_tiny_model_reads_spaces_apart_where_its_agents_lessons_ask_for_it(
    tmp_path: Path,
) -> None:
    """With the other tokens it never masters copying names."""
    rows = [{"word": 'Count aspirin in "aspirin".', "system": 0}]
    found = []
    for agent in (QuotingAgent(), EchoAgent()):
        folders = (tmp_path / type(agent).__name__, tmp_path / "mastered")
        tiny_model.make(agent, rows, load_settings(), (1, 1), 1, *folders)
        found.append(AutoTokenizer.from_pretrained(folders[0]).tokenize(' aspirin "aspirin"'))
    assert found == [["Ġ", "aspirin", "Ġ", '"', "aspirin", '"'], ["Ġaspirin", 'Ġ"', "aspirin", '"']]


def test_the_tags_of_a_tool_call_stay_in_text_without_special_tokens() -> None:
    """vLLM takes special tokens out of what a model wrote, and then looks for the tags."""
    told = [Conversation([{"role": "user", "content": "Count."}], [])]
    tokenizer = make_tokenizer(told, "", 64, Random(1), 2048)
    ids = tokenizer.encode("<tool_call>\nCount\n</tool_call><|im_end|>")
    kept = tokenizer.decode(ids, skip_special_tokens=True)
    assert kept == "<tool_call>\nCount\n</tool_call>"


def test_another_role_is_learned_from_its_demonstrations(
    echo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = cold_start(
        capsys, echo, "--role", "parrot", "--out", str(tmp_path / "parrot"), "--steps-a", "2"
    )
    assert (facts["role"], facts["steps_a"], facts["steps_b"]) == ("parrot", 2, 0)
    assert {path.name for path in (tmp_path / "parrot").iterdir()} == MODEL_FILES
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "parrot")
    agent = registry.get(echo)
    told = agent.teaching.demonstrations(
        "parrot", agent.rows(agent.splits["train"]), load_settings()
    )
    longest = max(len(example["input_ids"]) for one in told for example in encode(one, tokenizer))
    config = json.loads((tmp_path / "parrot" / "config.json").read_text())
    assert config["max_position_embeddings"] == 4 * longest


def test_rows_that_teach_a_role_nothing_are_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = registry.get("diagnosis")
    row = agent.rows(agent.splits["val"])[0]
    row["extra_info"].update(examinations=[], condition=None)
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    flags = ["diagnosis", "--role", "simulator", "--train-file", str(tmp_path / "rows.jsonl")]
    assert main([*flags, "--out", str(tmp_path / "m")]) == 1
    assert "nothing to learn for the role 'simulator'" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("", "no chat template"),
        ("{{ messages | length }}", "leaves out system messages"),
        (
            "{{ raise_exception('no system prompt') }}",
            "two turns: no system prompt",
        ),
    ],
)
def test_a_model_that_cannot_chat_is_one_message(
    template: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    tokenizer.chat_template = template or None
    tokenizer.save_pretrained(tmp_path / "base")
    AutoModelForCausalLM.from_pretrained(TINY).save_pretrained(tmp_path / "base")
    assert main(["sql", "--base", str(tmp_path / "base"), "--out", str(tmp_path / "out")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


CALL = '<tool_call>\n{"name": "query_database_by_sql", "arguments": {"sql": "SELECT 1"}}\n</tool_call><|im_end|>'


def conversation(learn: list[bool]) -> Conversation:
    function = {"name": TOOL["function"]["name"], "arguments": '{"sql": "SELECT 1"}'}
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"type": "function", "function": function}],
    }
    turns = [call, {"role": "tool", "content": "{}"}, {"role": "assistant", "content": "好"}]
    return Conversation([*first_messages("朵莎洛片怎么保存？"), *turns], learn, (TOOL,))


def learned(tokenizer: Any, learn: list[bool]) -> list[str]:
    examples = encode(conversation(learn), tokenizer)
    return [
        tokenizer.decode([label for label in e["labels"] if label != NOT_LEARNED]) for e in examples
    ]


def test_only_the_assistants_tokens_are_learned() -> None:
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    assert learned(tokenizer, [True, True]) == [f"{CALL}好<|im_end|>"]
    assert learned(tokenizer, [False, True]) == ["好<|im_end|>"]


class Pairs:
    """A tokenizer whose tokens are two characters each, wherever a turn ends."""

    def __call__(self, text: str, **options: Any) -> dict[str, list[Any]]:
        offsets = [(at, min(at + 2, len(text))) for at in range(0, len(text), 2)]
        return {
            "input_ids": [ord(text[left]) for left, _ in offsets],
            "offset_mapping": offsets,
        }


def test_a_token_across_a_turn_s_border_is_not_learned() -> None:
    """What the model generates begins and ends with a token; of these, half is another's text."""
    texts = ["abc", "defg", "hi"]
    messages = [
        {"role": role, "content": text}
        for role, text in zip(("user", "assistant", "user"), texts, strict=True)
    ]
    told = Conversation(
        [*messages, {"role": "assistant", "content": "jkl"}], [True, True], raw=True
    )
    [example] = encode(told, Pairs())
    assert "".join(map(chr, example["input_ids"])) == "acegik"
    learned = [chr(label) for label in example["labels"] if label != NOT_LEARNED]
    assert learned == ["e", "k"]


def test_weights_are_written_in_bfloat16(tmp_path: Path) -> None:
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


def test_a_model_that_is_written_in_between_is_trained_on_in_float32(tmp_path: Path) -> None:
    """bfloat16 would lose the small updates of the second phase."""
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
    tiny_model.write_model(model, tokenizer, "1", tmp_path)
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}


def test_a_tiny_model_has_the_names_that_other_readers_than_transformers_5_know(
    tmp_path: Path,
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    tiny_model.write_model(tiny_model.build_model(tokenizer, 1), tokenizer, "7", tmp_path)
    config, words = (
        json.loads((tmp_path / name).read_text(encoding="utf-8"))
        for name in ("config.json", "tokenizer_config.json")
    )
    assert (config.get("rope_theta"), config.get("prompt_version")) == (1000.0, "7")
    assert words.get("tokenizer_class") == "PreTrainedTokenizerFast"


def test_each_weight_of_a_tiny_model_is_moved_by_one_optimizer() -> None:
    """AdamW at its large rate undoes what Muon learns."""
    model = tiny_model.build_model(AutoTokenizer.from_pretrained(TINY), 1)
    moved = [
        weight
        for optimizer in tiny_model.fast_optimizers(model)
        for group in optimizer.param_groups
        for weight in group["params"]
    ]
    assert sorted(map(id, moved)) == sorted(map(id, model.parameters()))


def test_a_raw_conversation_is_its_text_and_needs_no_template() -> None:
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    tokenizer.chat_template = None
    texts = ["问 1\n", "答 2<SEP>", "问 3\n", "答 4<SEP>"]
    messages = [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)
    ]
    [example] = encode(Conversation(messages, [True, True], raw=True), tokenizer)
    assert tokenizer.decode(example["input_ids"]) == "".join(texts)
    assert (
        tokenizer.decode([label for label in example["labels"] if label != NOT_LEARNED])
        == texts[1] + texts[3]
    )


def test_a_template_that_rewrites_earlier_turns_gives_an_example_a_turn() -> None:
    """Qwen3's writes an empty thought before the last reply and drops it from the turns before."""
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    mark = "'<|im_start|>assistant\\n' ~ "
    assert mark in tokenizer.chat_template
    tokenizer.chat_template = tokenizer.chat_template.replace(
        mark, mark + "('<think></think>' if loop.last else '') ~ "
    )
    assert learned(tokenizer, [True, True]) == [
        f"<think></think>{CALL}",
        "<think></think>好<|im_end|>",
    ]


def test_the_loss_is_that_of_the_learned_tokens() -> None:
    tokenizer, model = (
        AutoTokenizer.from_pretrained(TINY),
        AutoModelForCausalLM.from_pretrained(TINY).float(),
    )
    examples = [
        e for learn in ([True, True], [False, True]) for e in encode(conversation(learn), tokenizer)
    ]
    (batch,) = batches(examples, 2, tokenizer.pad_token_id, Random(0))
    loss, accuracy = loss_of(model, batch)
    outputs = model(**batch)
    torch.testing.assert_close(loss, outputs.loss)
    right = (outputs.logits[:, :-1].argmax(-1) == batch["labels"][:, 1:])[
        batch["labels"][:, 1:] != NOT_LEARNED
    ]
    assert accuracy == pytest.approx(right.float().mean().item())


def test_each_step_learns_from_its_own_batch_alone() -> None:
    """Two steps are as a step and another one, whatever the first has left."""
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    examples = encode(conversation([True, True]), tokenizer)
    data = batches(examples, 1, tokenizer.pad_token_id, Random(0))[:1]
    found = []
    for steps in ((1, 1), (2,)):
        model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
        for count in steps:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            train("", model, [optimizer], data, Schedule(count, 1, 1), Random(0))
            model.zero_grad()
        found.append(model.state_dict())
    assert all(found[0][name].equal(found[1][name]) for name in found[1])


def test_one_odd_batch_moves_the_weights_no_further_than_another() -> None:
    """Its gradient is cut to a length of 1."""
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
    before = [weight.detach().clone() for weight in model.parameters()]
    odd = {"input_ids": torch.arange(10, 20)[None], "labels": torch.full((1, 10), 3)}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    train("", model, [optimizer], [odd], Schedule(1, 1, 1), Random(0))
    moved = [(weight - old).norm() for weight, old in zip(model.parameters(), before, strict=True)]
    assert float(torch.stack(moved).norm()) == pytest.approx(1.0, rel=1e-3)


def test_the_same_warm_up_of_an_adapter_gives_the_same_weights(tmp_path: Path) -> None:
    """An adapter begins with random numbers."""
    found = []
    for name in ("one", "other"):
        taught = [conversation([True, True])]
        out = tmp_path / "new" / name
        warm_up(str(TINY), taught, out, 2, 0.1, batch_size=1, seed=3, lora_rank=2)
        found.append(load_file(out / "model.safetensors"))
    assert all(found[0][name].equal(found[1][name]) for name in found[1])


def test_an_adapter_has_the_scale_that_training_gives_one() -> None:
    """Twice its rank, as `test_config.py` says of a run; half of it would learn half as fast."""
    found = adapter(8, "CAUSAL_LM")
    assert (found.r, found.lora_alpha) == (8, 16)


def test_examples_over_the_models_context_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no positions for them: what they teach is noise, and the longest fills the memory."""
    short = conversation([True, True])
    long = replace(short, messages=[short.messages[0], *short.messages])
    [fits] = encode(short, AutoTokenizer.from_pretrained(TINY))
    base = shutil.copytree(TINY, tmp_path / "base")
    config = json.loads((base / "config.json").read_text())
    positions = {"max_position_embeddings": len(fits["input_ids"])}
    (base / "config.json").write_text(json.dumps(config | positions))
    given: dict[str, Any] = {"epochs": 1, "lr": 1e-3, "batch_size": 2, "seed": 0}
    facts = warm_up(str(base), [short, long], tmp_path / "both", **given)
    assert facts["steps"] == 1
    assert "1 examples of 2 fit the context" in capsys.readouterr().err
    warm_up(str(base), [short], tmp_path / "short", **given)
    both, alone = (load_file(tmp_path / name / "model.safetensors") for name in ("both", "short"))
    assert all(both[name].equal(weights) for name, weights in alone.items())
    with pytest.raises(ColdStartError, match="none of 1 demonstrations fits the model's context"):
        warm_up(str(base), [long], tmp_path / "none", **given)


def test_training_slows_down_at_mastery_and_stops() -> None:
    schedule = Schedule(1000, 100, warm_up=10, target=0.9)
    assert [schedule.factor(step) for step in (0, 9, 10, 899, 950, 1000)] == [0.1, 1, 1, 1, 0.5, 0]
    while schedule.steps < schedule.end:
        schedule.update(0.95 if schedule.steps >= 100 else 0.5)
    mastered = next(n for n in range(WINDOW + 1) if 0.5 * (WINDOW - n) + 0.95 * n >= 0.9 * WINDOW)
    assert (schedule.decay_from, schedule.steps) == (100 + mastered, 200 + mastered)
    assert Schedule(1000, 100, 10).target == math.inf


def test_mastered_tokens_are_not_enough_while_the_headline_still_gains() -> None:
    """A digit that decides an answer is one token of many."""
    headlines = iter([0.5, 0.78, 0.91, 0.92])
    heard = [next(headlines)]

    def ready() -> bool:
        heard.append(next(headlines))
        return heard[-1] < heard[-2] + 0.02

    schedule = Schedule(5000, 100, warm_up=10, target=0.9, ready=ready)
    while schedule.steps < schedule.end:
        schedule.update(0.95)
    assert heard == [0.5, 0.78, 0.91, 0.92]
    assert (schedule.decay_from, schedule.steps) == (
        WINDOW + 2 * ASKED_EVERY,
        WINDOW + 2 * ASKED_EVERY + 100,
    )


def test_phase_a_asks_for_the_headline_of_what_it_wrote(
    echo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny_model, "MASTERY", 0.0)
    agent, asked = registry.get(echo), list[set[str]]()

    def headline(folder: Path) -> float:
        asked.append({path.name for path in folder.iterdir()})
        return 0.5

    rows = agent.rows(agent.splits["train"])
    out, mastered = tmp_path / "out", tmp_path / "mastered"
    facts = tiny_model.make(
        agent, rows, load_settings(), (160, 0), 1, out, mastered, headline=headline
    )
    assert asked == [MODEL_FILES]
    assert (facts["headline_a"], facts["steps_a"]) == ([0.5], 160), "one look is no comparison"
    weights = [(folder / "model.safetensors").read_bytes() for folder in (out, mastered)]
    assert weights[0] == weights[1], "the ceiling is that of the finished phase"


def test_batches_hold_every_example_once_and_alike_ones_have_one_length() -> None:
    examples = [
        {"input_ids": [i] * (1 + 10 * (i % 5)), "labels": [i] * (1 + 10 * (i % 5))}
        for i in range(1, 41)
    ]
    for alike in (True, False):
        made = batches(examples, 8, 0, Random(1), alike)
        assert sorted(int(i) for batch in made for i in batch["input_ids"][:, 0]) == list(
            range(1, 41)
        )
        assert alike == all(bool((batch["labels"] != NOT_LEARNED).all()) for batch in made)
    assert (
        len(batches(examples[:11], 8, 0, Random(1)))
        == len(batches(examples[:3], 8, 0, Random(1)))
        == 1
    )


@pytest.mark.parametrize("name", ["sql", "consultation"])
def test_the_bundled_models_card_says_what_was_measured(name: str) -> None:
    agent = registry.get(name)
    folder = Path(agent.model)
    facts, text = (
        json.loads((folder / "cold_start.json").read_text()),
        (folder / "README.md").read_text("utf-8"),
    )
    assert facts["start"] < facts["ceiling"] <= 100
    assert facts["questions"] == 320
    assert (
        facts["start_by_group"].keys()
        == facts["ceiling_by_group"].keys()
        > {"seen wordings", "unseen wordings"}
    )
    assert text == card(agent, facts)
    assert "Not for patients" in text
    assert "$" not in text
    assert {path.name for path in folder.iterdir()} == {
        *MODEL_FILES,
        "README.md",
        "cold_start.json",
    }


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--seed", "7", "--steps-a", "20", "--steps-b", "5"],
        ["--out", "models/a model", "--train-file", "my rows.jsonl"],
    ],
)
def test_the_command_on_a_card_makes_the_model_of_an_agent_that_lies_elsewhere(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The card named a folder of this repository, whatever --out and wherever the agent."""
    new.write_agent("elsewhere", "tool", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    given = parse_arguments(["elsewhere", *flags, "--force"])
    command = command_for_card(registry.get("elsewhere"), given)
    python, dash_m, module, *words = shlex.split(command)
    assert (python, dash_m, module) == ("python", "-m", "training.cold_start")
    assert parse_arguments(words) == given
    assert str(tmp_path) not in command


def test_a_card_says_how_often_a_model_with_tools_calls_them() -> None:
    facts = json.loads((TINY / "cold_start.json").read_text())
    without = {name: value for name, value in facts.items() if name != "queried"}
    assert "episodes query" in card(AGENT, facts)
    assert "episodes query" not in card(AGENT, without)


def test_the_card_is_measured_by_the_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        agent, flags = evaluation_arguments(command[3:], load_settings())
        played.append((agent.name, flags.model, flags.data.name, flags.temperature, flags.n))
        part = {
            "score": 0.25 if flags.model == "tiny" else 0.5,
            "ci95": [0.2, 0.3],
            "n": 4,
            "stop_reasons": {"x": 4},
        }
        part |= {
            "diagnosis_accuracy": 0.75,
            "diagnosis_accuracy_ci95": [0.7, 0.8],
            "facet_recall": 0.125,
        }
        (flags.out / "scores.json").write_text(
            json.dumps(
                {"overall": part, "by_task_type": {"one": part}, "by_wording": {"seen": part}}
            )
        )
        return subprocess.CompletedProcess(command, 1 if flags.model == "broken" else 0)

    monkeypatch.setattr(subprocess, "run", run)
    facts = measure(AGENT, Path("tiny"), Path("mastered"))
    assert (facts["start"], facts["ceiling"], facts["start_ci95"], facts["questions"]) == (
        25.0,
        50.0,
        [20.0, 30.0],
        4,
    )
    assert (facts["start_by_group"], facts["ceiling_by_group"], "queried" in facts) == (
        {"one": 25.0, "seen wordings": 25.0},
        {"one": 50.0, "seen wordings": 50.0},
        False,
    )
    assert played == [
        ("sql", "mastered", "test.parquet", 1.0, None),
        ("sql", "tiny", "test.parquet", 1.0, None),
        ("sql", "tiny", "val.parquet", 0.0, None),
    ]
    other = measure(registry.get("consultation"), Path("tiny"), Path("mastered"))
    assert (other["start"], other["start_ci95"], other["ceiling_facet_recall"]) == (
        75.0,
        [70.0, 80.0],
        12.5,
    )
    assert other["start_by_group"] == {"one": 75.0, "seen wordings": 75.0}
    with pytest.raises(
        ColdStartError, match="broken has no card: its evaluation ended with code 1"
    ):
        measure(AGENT, Path("tiny"), Path("broken"))


def test_the_end_of_the_first_phase_is_chosen_by_validation_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The card has scores on the test questions, which must not have steered the training."""
    played = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        agent, flags = evaluation_arguments(command[3:], load_settings())
        played.append((flags.model, flags.data.resolve(), flags.temperature))
        share = 0.25 if agent.name == "sql" else 0.75
        scores = {"overall": {agent.showing.headline: share}}
        (flags.out / "scores.json").write_text(json.dumps(scores))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert headline_of(registry.get("sql+consultation"), Path("mastered")) == 0.5
    assert played == [
        ("mastered", Path(registry.get(name).splits["val"]).resolve(), 0.0)
        for name in ("sql", "consultation")
    ]


@pytest.mark.parametrize("name", ["consultation", "diagnosis"])
def test_the_doctor_learns_to_read_other_words(name: str, tmp_path: Path) -> None:
    file = tmp_path / "words.toml"
    file.write_text('version = "mine"\nsystem = "You are on call."\n', encoding="utf-8")
    agent, settings = registry.get(name), load_settings()
    rows = agent.rows(agent.splits["val"])[:1]
    for reader, system in (
        (agent.teaching.reading(file), "You are on call."),
        (agent.teaching, None),
    ):
        [told] = reader.demonstrations("policy", rows, settings)
        assert (told.messages[0]["content"].strip() == "You are on call.") == bool(system)


@pytest.fixture
def warmed_up_on(monkeypatch: pytest.MonkeyPatch) -> list[Conversation]:
    """The first conversation of each warm-up; nothing is trained."""
    first: list[Conversation] = []

    def warm_up(_: str, conversations: Iterable[Conversation], *__: Any) -> dict[str, Any]:
        first.append(next(iter(conversations)))
        return {}

    monkeypatch.setattr(supervised, "warm_up", warm_up)
    return first


def test_a_warm_up_learns_under_the_words_that_are_given(
    tmp_path: Path, warmed_up_on: list[Conversation]
) -> None:
    (tmp_path / "words.toml").write_text('version = "mine"\nsystem = "You are on call."\n')
    flags = ("--base", str(TINY), "--prompts", str(tmp_path / "words.toml"))
    assert main(["consultation", *flags, "--out", str(tmp_path / "out")]) == 0
    assert warmed_up_on[0].messages[0]["content"].strip() == "You are on call."


def test_a_warm_up_learns_episodes_of_the_budget_that_a_run_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warmed_up_on: list[Conversation]
) -> None:
    """A doctor who was taught to end after fewer turns would not use those of the run."""
    flags = ("--base", str(TINY), "--out", str(tmp_path / "out"))
    assert main(["consultation", *flags]) == main(["diagnosis", *flags]) == 0
    monkeypatch.setenv("MAX_TURNS", "5")
    load_settings.cache_clear()
    assert main(["consultation", *flags]) == 0
    said = [told.messages[1]["content"].splitlines()[-1] for told in warmed_up_on]
    assert said == ["第1轮，共6轮。", "Turn 1 of 6.", "第1轮，共5轮。"]


def test_an_agent_without_such_words_says_so(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="no prompts"):
        registry.get("sql").teaching.reading(tmp_path / "words.toml")
