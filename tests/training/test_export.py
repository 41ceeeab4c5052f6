"""Which checkpoint is exported, what its folder and card hold, and what is refused."""

import shutil
from pathlib import Path

import pytest

from common.jsonl import write_jsonl
from common.settings import ROOT
from sql_agent.agent import AGENT
from tests.corpora import write_metrics
from tests.messages import missing
from training import export
from training.engine.checkpoints import MARK

TINY = ROOT / "sql_agent" / "tiny_model"
CONFIG = """
trainer: {project_name: sql_agent}
data: {train_batch_size: 4, seed: 1}
algorithm: {adv_estimator: grpo}
actor_rollout_ref: {model: {path: /home/somebody/models/base, lora_rank: 0}, rollout: {n: 4, temperature: 1.0}}
"""
VALIDATION = {1: 0.2, 2: 0.9, 3: 0.5, 4: 1.0}


@pytest.fixture
def run(tmp_path):
    """A run with checkpoints of the steps 1 to 3, and one of step 4 that was not finished."""
    folder = tmp_path / "runs" / "mine"
    for step in VALIDATION:
        model = folder / f"checkpoints/global_step_{step}/actor/huggingface"
        shutil.copytree(TINY, model, ignore=shutil.ignore_patterns("cold_start.json", "README.md"))
        (model.parent / "optim_world_size_1_rank_0.pt").write_bytes(b"pickle")
    (folder / "checkpoints" / MARK).write_text("3")
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "versions.json").write_text('{"verl": "0.9.1"}')
    write_metrics(
        folder,
        {
            step: {"episodes/reward/mean": step / 10, "val-core/a/reward/mean@1": score}
            for step, score in VALIDATION.items()
        },
    )
    (folder / "data").mkdir()
    for part in ("train", "val"):
        rows = AGENT.rows(AGENT.splits[part])[:1]
        write_jsonl(folder / "data" / f"{part}.jsonl", rows, force=True)
    return folder


def exported(run: Path, *flags: str, to: str = "out") -> tuple[int, Path]:
    target = run.parent / to
    return export.main([str(run), "--to", str(target), *flags]), target


def nothing_new(run: Path) -> bool:
    return [path.name for path in run.parent.iterdir()] == [run.name]


@pytest.mark.parametrize(("step", "found"), [("latest", 3), ("2", 2), ("best", 2)])
def test_the_step_that_is_meant(run, step, found):
    assert export.choose_checkpoint(run, step).name == f"global_step_{found}"


@pytest.mark.parametrize("step", ["4", "last"])
def test_a_step_without_a_complete_checkpoint_is_refused(run, step, capsys):
    assert exported(run, f"--step={step}")[0] == 2
    assert "1, 2, 3" in capsys.readouterr().err
    assert nothing_new(run)


def test_the_folder_has_what_loads_a_model_and_nothing_pickled(run):
    code, folder = exported(run)
    assert code == 0
    files = {path.name for path in folder.iterdir()}
    assert files == {path.name for path in TINY.iterdir()} - {"cold_start.json"} | {"README.md"}
    assert (folder / "model.safetensors").read_bytes() == (TINY / "model.safetensors").read_bytes()


def test_the_card_has_the_settings_and_no_path_of_this_machine(run):
    code, folder = exported(run, "--step", "best")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert code == 0
    assert not missing(card, "step 2 of", "| episodes a task | 4 |", "Not for patients")
    assert "/home/somebody" not in card


def test_nothing_is_overwritten(run, capsys):
    (run.parent / "out").mkdir()
    assert exported(run)[0] == 2
    assert str(run.parent / "out") in capsys.readouterr().err
    assert exported(run, to="no/where")[0] == 0, "folders above an output are made"
    assert exported(run, to="no/where/config.json/below")[0] == 2
    assert [*(run.parent / "out").iterdir()] == []


def test_what_is_no_run_or_lacks_a_part_is_said_in_one_line(run, tmp_path, capsys):
    assert exported(tmp_path / "runs", "--step", "1")[0] == 2
    (run / "checkpoints/global_step_3/actor/huggingface/tokenizer.json").unlink()
    assert exported(run)[0] == 2
    (run / "config.yaml").write_text("trainer: [")
    assert exported(run)[0] == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
    assert nothing_new(run)
