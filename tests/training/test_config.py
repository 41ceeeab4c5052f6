"""Our settings and verl's tree agree, or the run stops before anything heavy is imported.

Keeps of docs/sql.md, "A turn": an override that makes agent and trainer differ, or a
temperature, token budget or batch size that cannot work, stops the run.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from sql_agent.agent import AGENT
from tests.messages import missing
from tests.training.plans import plan_of
from training.setup.agreement import last_step
from training.setup.plan import ConfigError
from training.setup.presets import choose
from training.setup.verl_config import build_config, parse_overrides

ROOT = Path(__file__).parents[2]
FILES = {"train": "train.parquet", "val": "val.parquet"}
TURNS = "actor_rollout_ref.rollout.multi_turn.max_assistant_turns"
pytestmark = pytest.mark.usefixtures("composed_once")


def build(tmp_path: Path, *overrides: str, device: str = "cpu", n_gpus: int = 1, **changes: object):
    preset = choose(AGENT, "full", device, n_gpus)
    changes.setdefault("max_tokens", AGENT.sizes(device).reply)
    return build_config(
        plan_of(tmp_path, device=device, **changes).engine,
        tmp_path,
        FILES,
        preset,
        parse_overrides(list(overrides)),
    )


def test_validation_samples_as_training_does(tmp_path: Path) -> None:
    """verl validates greedily by default: the reported reward would be of another policy than the
    one that learns.
    """
    rollout = build(tmp_path, temperature=0.7).actor_rollout_ref.rollout
    assert (rollout.temperature, rollout.val_kwargs.temperature) == (0.7, 0.7)


def test_another_batch_is_still_one_update(tmp_path: Path) -> None:
    config = build(tmp_path, "data.train_batch_size=24")
    assert config.actor_rollout_ref.actor.ppo_mini_batch_size == 24


@pytest.mark.parametrize(
    ("override", "named"),
    [
        (f"{TURNS}=5", ("3 turns", "--max-turns", f"{TURNS}=5")),
        ("actor_rollout_ref.rollout.temperature=0.7", ("1.0", "TEMPERATURE", "0.7")),
        ("actor_rollout_ref.rollout.top_p=0.9", ("top_p=0.9", "top_p=1")),
        ("actor_rollout_ref.rollout.top_k=20", ("top_k=20", "top_k=-1")),
        ("data.max_response_length=200", ("288", "data.max_response_length=200", "--max-turns")),
        ("data.max_prompt_length=900", ("900 + 384", "max_model_len=1024")),
        ("actor_rollout_ref.actor.ppo_max_token_len_per_gpu=512", ("_per_gpu=512",)),
        ("actor_rollout_ref.actor.ppo_mini_batch_size=5", ("=16", "ppo_mini_batch_size=5")),
        ("trainer.n_gpus_per_node=3", ("3 devices",)),
        ("actor_rollout_ref.rollout.n=1", ("rollout.n=1", "2")),
        ("actor_rollout_ref.model.lora_rank=8", ("lora_rank=8", "--lora-rank")),
        ("data.train_batch_sise=4", ("'data.train_batch_size'",)),
        ("trainer.max_actor_ckpt_to_keep=2", ("max_actor_ckpt_to_keep=2", "--keep")),
        ("trainer.total_training_steps=-3", ("trainer.total_training_steps=-3", "1")),
        ("trainer.save_freq=null", ("trainer.save_freq=null", "-1")),
        ("data.train_batch_size=true", ("data.train_batch_size=true", "1")),
        ("actor_rollout_ref.rollout.max_num_seqs=0", ("max_num_seqs=0", "1")),
        ("actor_rollout_ref.actor.optim.lr=.nan", ("optim.lr=.nan",)),
        ("trainer=null", ("trainer=null",)),
        ("trainer.default_local_dir=/elsewhere", ("/elsewhere", "--run-dir")),
        ("trainer.resume_mode=auto", ("trainer.resume_mode=auto", "--resume")),
        ("actor_rollout_ref.model.path=/other", ("/other", "--model")),
        ("trainer.v1.trainer_mode=colocate_async", ("colocate_async", "--async")),
        ("+trainer.nonsense=1", ("'trainer.nonsense'",)),
        ("not-an-override", ("'not-an-override'", "--help")),
        ("data.seed=[1", ("'data.seed=[1'", "YAML")),
    ],
)
def test_a_contradiction_or_unknown_key_is_explained(
    tmp_path: Path, override: str, named: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as refused:
        build(tmp_path, override)
    assert not missing(str(refused.value), *named)


@pytest.mark.parametrize(
    ("override", "last"),
    [
        ("trainer.total_training_steps=null", 8),  # four whole batches an epoch
        ("trainer.total_training_steps=5", 5),
        ("trainer.total_training_steps=9", 8),
        ("data.train_max_samples=40", 4),
    ],
)
def test_the_last_step_is_that_of_the_epochs_or_an_earlier_one(
    tmp_path: Path, override: str, last: int
) -> None:
    sizes = ("data.train_batch_size=16", "trainer.total_epochs=2")
    assert last_step(build(tmp_path, *sizes, override), 70) == last


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"asynchronous": "colocate"}, "--async"), ({"device": "cuda"}, "--device")],
)
def test_deterministic_promises_nothing_it_cannot_keep(
    tmp_path: Path, changes: dict[str, object], named: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        build(tmp_path, deterministic=True, **changes)
    assert not missing(str(refused.value), "--deterministic", named)


@pytest.mark.parametrize("text", ["3e-4", "3.0e-4", "0.0003"])
def test_a_learning_rate_is_a_number_however_it_is_written(tmp_path: Path, text: str) -> None:
    config = build(tmp_path, f"actor_rollout_ref.actor.optim.lr={text}")
    assert config.actor_rollout_ref.actor.optim.lr == 0.0003


def test_on_the_cpu_vllm_s_log_probs_are_the_old_policy_s(tmp_path: Path) -> None:
    rollout, bypass = (
        "actor_rollout_ref.rollout.calculate_log_probs",
        "algorithm.rollout_correction.bypass_mode",
    )
    config = build(tmp_path)
    assert config.algorithm.rollout_correction.bypass_mode
    assert config.actor_rollout_ref.actor.policy_loss.loss_mode == "bypass_mode"
    for other in ({"lora_rank": 8}, {"asynchronous": "colocate"}, {"device": "cuda"}):
        assert not build(tmp_path, **other).algorithm.rollout_correction.bypass_mode, other  # type: ignore[arg-type]
    config = build(tmp_path, f"{rollout}=false")
    assert not config.algorithm.rollout_correction.bypass_mode
    assert config.actor_rollout_ref.actor.policy_loss.loss_mode == "vanilla"
    with pytest.raises(ConfigError, match="calculate_log_probs"):
        build(tmp_path, f"{rollout}=false", f"{bypass}=true")


def test_too_few_rows_for_a_batch(tmp_path: Path) -> None:
    config = build(tmp_path)
    with pytest.raises(ConfigError, match="15 rows"):
        last_step(config, 15)
    config.data.train_max_samples = 1
    with pytest.raises(ConfigError, match="1 rows"):
        last_step(config, 16)


@pytest.mark.system
def test_a_disagreement_stops_before_heavy_imports() -> None:
    """The whole command line, in a process that reports whether torch, verl or ray were imported."""
    code = (
        "import sys; from training.start.command import main\n"
        f"code = main('sql', ['--ci-fast', '{TURNS}=7'])\n"
        "print(code, [name for name in ('torch', 'verl', 'ray', 'agentlightning') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "2 []"
    assert not missing(done.stderr, "3 turns", f"{TURNS}=7", "--max-turns")


def test_vllm_of_a_run_stands_behind_its_door(tmp_path: Path) -> None:
    """Without it any program of the machine could call the policy."""
    vllm = build(tmp_path).actor_rollout_ref.rollout.engine_kwargs.vllm
    assert vllm.middleware == "training.proxy.doors.Door"
    assert vllm.allowed_origins == "[]"
