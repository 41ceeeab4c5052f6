"""DPO on pairs, with TRL and a bundled model: what is learned and refused, and going on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import compress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer

from common.command import UsageError
from common.settings import ROOT
from episodes.episode import Conversation
from sql_agent.prompts import TOOL
from tests.corpora import write_lines
from tests.messages import missing
from training.pairs import dpo
from training.pairs.pair import Pair
from training.preferences import main
from training.warmup.examples import encode
from training.warmup.work_folder import work_path

pytestmark = pytest.mark.system
TINY = ROOT / "code_agent" / "tiny_model"
SQL = ROOT / "sql_agent" / "tiny_model"
QUERY = {"name": TOOL["function"]["name"], "arguments": '{"query": "SELECT 1"}'}
CALL = {"id": "call00001", "type": "function", "function": QUERY}


def rows(count: int) -> list[dict[str, Any]]:
    """Return pairs of which the chosen side counts rows and the rejected one columns."""
    found = []
    for number in range(count):
        asked = {"task": f"t{number}", "prompt": f"How many lab tests did patient {number} have?"}
        program = f"print((l.subject_id == {number})"
        found.append({**asked, "chosen": f"{program}.sum())", "rejected": f"{program}.count())"})
    return found


def pairs_file(folder: Path, count: int = 16) -> Path:
    return write_lines(folder / "pairs.jsonl", rows(count))


def command(folder: Path, out: str, *flags: str) -> list[str]:
    files = ["--model", str(TINY), "--out", str(folder / out)]
    files += ["--pairs", str(folder / "pairs.jsonl")]
    return ["code", *files, "--batch-size", "4", "--lr", "3e-3", *flags]


def margin(model: Path) -> float:
    """Return how much likelier a question's chosen reply is than the rejected one, in nats."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    row = rows(100)[-1]
    found = []
    for name in ("chosen", "rejected"):
        reply = {"role": "assistant", "content": row[name]}
        told = Conversation([{"role": "user", "content": row["prompt"]}, reply], [True])
        (example,) = encode(told, tokenizer)
        ids, labels = (torch.tensor([example[key]]) for key in ("input_ids", "labels"))
        with torch.no_grad():
            loss = loaded(ids, labels=labels).loss
        found.append(-float(loss) * int((labels != -100).sum()))
    return found[0] - found[1]


def test_the_chosen_side_becomes_likelier(tmp_path, capsys):
    pairs_file(tmp_path)
    assert main(command(tmp_path, "out", "--epochs", "2")) == 0
    said = capsys.readouterr()
    facts = json.loads((tmp_path / "out" / "preferences.json").read_text())
    assert not missing(said.err, "16 pairs", "16 tasks")
    assert (facts["pairs"], facts["steps"], facts["longer_wins"]) == (16, 8, 0.0)
    assert facts["curve"][-1]["rewards/margins"] > facts["curve"][0]["rewards/margins"] == 0
    assert margin(tmp_path / "out") > margin(TINY) + 1
    assert not work_path(tmp_path / "out").exists()


def test_one_batch_of_pairs_is_learned(tmp_path):
    pairs_file(tmp_path, 3)
    assert main(command(tmp_path, "out")) == 0
    assert margin(tmp_path / "out") > margin(TINY)


def test_only_what_the_policy_wrote_is_learned():
    _, tokenizer, context = dpo.load(SQL, tools=True, thinking=False)
    prompt = [{"role": "system", "content": "查。"}, {"role": "user", "content": "几？"}]
    result = {"role": "tool", "tool_call_id": CALL["id"], "name": "query", "content": "[[7]]"}
    called = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    chosen = [*prompt, called, result, {"role": "assistant", "content": "七。"}]
    rejected = [*prompt, {"role": "assistant", "content": "八。"}]
    found = Pair("t", chosen, rejected, (TOOL,))
    (row,) = dpo.encoded([found], tokenizer, context, Counter())
    learned = {}
    for name in ("chosen", "rejected"):
        learned[name] = tokenizer.decode([*compress(row[name], row[f"{name}_mask"])])
    assert not missing(learned["chosen"], "SELECT 1", "七。")
    assert "[[7]]" not in learned["chosen"]
    assert "[[7]]" in tokenizer.decode(row["chosen"])
    assert TOOL["function"]["description"] in tokenizer.decode(row["rejected"]), "as in episodes"
    assert learned["rejected"].startswith("八。")
    assert "几" not in learned["rejected"]
    batch = dpo.collate(tokenizer.pad_token_id, [row, row])
    assert batch["input_ids"].shape == batch["completion_mask"].shape == (4, len(row["chosen"]))
    chosen, rejected = sum(row["chosen_mask"]), sum(row["rejected_mask"])
    assert batch["completion_mask"].sum(1).tolist() == [chosen, chosen, rejected, rejected]


def test_a_pair_whose_earlier_turns_the_template_rewrites_is_left_out():
    """Of its first turn alone another answer would be learned."""
    _, tokenizer, context = dpo.load(SQL, tools=True, thinking=False)
    tokenizer.chat_template = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n"
        "{{ message.content if loop.last or message.role == 'user' else message.content[-1:] }}"
        "<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    told = [{"role": "user", "content": "几？"}]
    for text in ("六七", "八九"):
        told = [*told, {"role": "assistant", "content": text}, {"role": "user", "content": "说"}]
    with pytest.raises(UsageError, match="rewrites earlier turns"):
        dpo.encoded([Pair("t", told[:4], told[:2])], tokenizer, context, Counter())


def test_what_exists_is_not_replaced(tmp_path, capsys):
    pairs_file(tmp_path)
    (tmp_path / "out").mkdir()
    assert main(command(tmp_path, "out")) == 2
    assert not missing(capsys.readouterr().err, tmp_path / "out")
    (tmp_path / "out" / "config.json").touch()
    assert main(command(tmp_path, "out")) == 2
    assert not missing(capsys.readouterr().err, tmp_path / "out", "--force")


def test_what_was_begun_with_another_model_is_not_gone_on_with(tmp_path, capsys, monkeypatch):
    """The result would have the weights of one model and the name of the other."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dpo, "settings_of", interrupted)
    pairs_file(tmp_path, 4)
    assert main(command(tmp_path, "out")) == 130
    other = shutil.copytree(TINY, tmp_path / "other")
    weights = load_file(TINY / "model.safetensors")
    changed = {name: 2 * weight for name, weight in weights.items()}
    save_file(changed, other / "model.safetensors", {"format": "pt"})
    assert main([*command(tmp_path, "out"), "--model", str(other)]) == 2
    assert not missing(capsys.readouterr().err, "other model", "--force")


def killed_after_a_checkpoint(arguments: list[str], work: Path) -> None:
    """Start the command and send SIGKILL once it has saved half of its steps."""
    process = subprocess.Popen([sys.executable, "-m", "training.preferences", *arguments], cwd=ROOT)
    while not (work / "checkpoint-2" / "trainer_state.json").is_file():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def steps_of(trainer: type[Trainer], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of steps before each step that a trainer takes."""
    taken, step = list[int](), trainer.training_step

    def noted(self: Trainer, *given: Any) -> Any:
        taken.append(self.state.global_step)
        return step(self, *given)

    monkeypatch.setattr(trainer, "training_step", noted)
    return taken


def test_a_killed_command_ends_where_an_undisturbed_one_does(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the killed process has it: sums depend on it
    pairs_file(tmp_path, 24)
    arguments = command(tmp_path, "out", "--epochs", "1")
    work = work_path(tmp_path / "out")
    killed_after_a_checkpoint(arguments, work)
    assert not (tmp_path / "out").exists()
    assert main([*arguments, "--lr", "1e-3"]) == 2
    assert not missing(capsys.readouterr().err, "other lr", "--force")
    half = work / "checkpoint-99"
    half.mkdir()
    (half / "trainer_state.json").write_text('{"epoch": 0.')
    assert "checkpoint-99" not in str(dpo.last_checkpoint(work))
    assert not half.exists()
    begun = steps_of(dpo.EpisodePairTrainer, monkeypatch)
    for name in ("out", "undisturbed"):
        assert main(command(tmp_path, name, "--epochs", "1")) == 0
    torch.set_num_threads(threads)
    assert begun[0] >= 2, "what was learned before it was killed is not learned again"
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("out", "undisturbed")]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[1])
