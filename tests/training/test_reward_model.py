"""A reward model trained on pairs by TRL, what it is measured by, and its server (needs torch)."""

import asyncio
import json
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from common.command import UsageError
from common.settings import ROOT
from scoring.case import Case
from scoring.reward_model_judge import RewardModelJudge
from scoring.scale import load_scale
from tests.messages import missing
from training.pairs.pair import Pair, Side
from training.pairs.ranking import split_by_task
from training.pairs.scorer import load_scorer
from training.reward_model import main
from training.warmup.work_folder import work_path

pytestmark = pytest.mark.system
TINY = ROOT / "sql_agent" / "tiny_model"
WORDS = ("口苦", "恶心", "皮疹", "头晕")


def row(number: int, ties: bool = False) -> dict[str, str]:
    """Return a pair of which the better answer quotes a row and the worse one finds nothing."""
    word = WORDS[number % len(WORDS)]
    good, bad = f"不良反应：{word}", "没有找到该药品。"
    if ties:  # nothing in the answers says which one is the better one
        good, bad = random.Random(number).sample([good, bad], 2)
    return {
        "prompt": f"药品{number}有什么不良反应？",
        "chosen": good,
        "rejected": bad,
        "task": str(number),
    }


def pair_of(task: str) -> Pair:
    return Pair(task, "?", Side([], "a"), Side([], "b"))


def pairs_file(folder: Path, count: int, ties: bool = False) -> Path:
    path = folder / "pairs.jsonl"
    lines = [json.dumps(row(number, ties)) + "\n" for number in range(count)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def command(folder: Path, *flags: str, count: int = 40, ties: bool = False) -> list[str]:
    path = pairs_file(folder, count, ties)
    where = ["--base", str(TINY), "--out", str(folder / "out"), "--pairs", str(path)]
    return ["sql", *where, "--lr", "3e-3", *flags]


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A reward model that prefers what quotes a row."""
    folder = tmp_path_factory.mktemp("reward")
    assert main(command(folder, "--epochs", "2")) == 0
    return folder / "out"


def test_it_ranks_answers_of_tasks_that_it_never_saw(learned):
    facts = json.loads((learned / "reward_model.json").read_text())
    held = facts["held_out"]
    assert (facts["pairs"], held["pairs"]) == (32, 8)
    assert held["accuracy"] == 1.0
    assert not work_path(learned).exists()
    good, bad = load_scorer(learned).scores(
        [("药品99？", "不良反应：皮疹"), ("药品99？", "没有找到。")]
    )
    assert good > bad


def test_what_is_measured_on_is_what_was_held_out():
    pairs = [pair_of(str(number)) for number in range(40)]
    taught, held = split_by_task(pairs, 0.2, seed=0)
    assert (len(taught), len(held)) == (32, 8)
    assert not {pair.task for pair in taught} & {pair.task for pair in held}
    with pytest.raises(UsageError, match="one task"):
        split_by_task(pairs[:1], 0.2, seed=1)


def test_scores_that_say_nothing_get_no_map(tmp_path, capsys):
    """An adapter is trained here: what is written is one model, as without."""
    flags = ["--lr", "1e-7", "--epochs", "0.2", "--lora-rank", "4"]
    assert main(command(tmp_path, *flags, count=80, ties=True)) == 1
    facts = json.loads((tmp_path / "out" / "reward_model.json").read_text())
    assert facts["held_out"]["accuracy"] < 0.9
    assert "held-out" in capsys.readouterr().err
    assert not (tmp_path / "out" / "reward_scale.json").exists()
    names = load_file(tmp_path / "out" / "model.safetensors")
    assert "score.weight" in names
    assert [name for name in names if "lora" in name] == []


@pytest.fixture(scope="module")
def address(learned):
    """The URL and the scale that the served reward model names."""
    asked = [sys.executable, "-m", "training.serve", "--reward-model", str(learned)]
    process = subprocess.Popen(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    settings = dict(word.split("=", 1) for word in line.split() if "=" in word)
    yield settings["REWARD_MODEL_URL"], settings["REWARD_SCALE"]
    process.terminate()
    process.wait()


def test_the_judge_reads_what_is_served(address, learned):
    url, scale = address
    judge = RewardModelJudge(url, timeout=30, scale=load_scale(scale))

    async def judged(answer: str) -> float | None:
        return (await judge.judge(Case("药品5有什么不良反应？", answer, "", [], {}))).score

    async def both() -> list[float | None]:
        return [await judged("不良反应：皮疹"), await judged("没有找到该药品。")]

    good, bad = asyncio.run(both())
    assert good is not None
    assert bad is not None
    assert good > 0.8 > 0.2 > bad


def test_a_text_that_does_not_fit_is_unscored_and_never_cut(address):
    judge = RewardModelJudge(address[0], timeout=30, scale=load_scale(address[1]))
    verdict = asyncio.run(judge.judge(Case("药品5？", "不良反应：皮疹" * 2000, "", [], {})))
    assert verdict.score is None
    assert "1024" in judge.last_failure


def test_a_folder_without_a_reward_model_is_refused(capsys):
    from training.serve import main as serve

    with socket.create_server(("127.0.0.1", 0)) as taken:  # it could not be served in any case
        port = str(taken.getsockname()[1])
        assert serve(["--reward-model", str(TINY), "--port", port]) == 2
    assert not missing(capsys.readouterr().err, TINY, "reward_model.json")
