"""Settings and verl's tree agree, or the run stops before anything heavy is imported."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from episodes.agent import bundled_model
from episodes.joint import WEIGHT, WHOSE
from sql_agent.agent import AGENT
from tests.corpora import cases_of
from tests.messages import missing
from tests.programs import python
from tests.training.conftest import verl_s_defaults
from tests.training.plans import plan_of
from training.setup import verl_config
from training.setup.plan import ConfigError
from training.setup.presets import choose, keys_of
from training.setup.verl_config import build_config, parse_overrides
from training.start.check import check_ready, steps_of

FILES = {"train": "train.parquet", "val": "val.parquet"}
TURNS = "actor_rollout_ref.rollout.multi_turn.max_assistant_turns"
SEQUENCES = "seq-mean-token-sum-norm"


def build(tmp_path: Path, *overrides: str, device: str = "cpu", n_gpus: int = 1, **changes: object):
    preset = choose(AGENT, "full", device, n_gpus) | keys_of(changes.get("algorithm"))
    changes.setdefault("max_tokens", AGENT.sizes(device).reply)
    plan = plan_of(tmp_path, device=device, **changes)
    return build_config(plan.engine, tmp_path, FILES, preset, parse_overrides(list(overrides)))


def test_verl_may_be_an_editable_install(tmp_path, monkeypatch):
    """Then a note of it alone lies among the installed packages."""
    note = tmp_path / "verl-0.9.1.dist-info"
    note.mkdir()
    (note / "METADATA").write_text("Metadata-Version: 2.1\nName: verl\nVersion: 0.9.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert verl_s_defaults.__wrapped__().trainer.total_epochs


def test_validation_samples_as_training_does(tmp_path):
    """verl validates greedily by default, which is another policy than the one that learns."""
    rollout = build(tmp_path, temperature=0.7).actor_rollout_ref.rollout
    assert (rollout.temperature, rollout.val_kwargs.temperature) == (0.7, 0.7)
    greedy = build(tmp_path, "actor_rollout_ref.rollout.val_kwargs.do_sample=false")
    assert greedy.actor_rollout_ref.rollout.val_kwargs.temperature == 0.0


@pytest.mark.parametrize("given", ["[console]", "[console,wandb]", "wandb"])
def test_a_run_keeps_its_books_whatever_tracker_is_named(tmp_path, given):
    logger = build(tmp_path, f"trainer.logger={given}").trainer.logger
    assert [*logger] == ["console", "file", *(["wandb"] if "wandb" in given else [])]


def test_another_batch_is_still_one_update(tmp_path):
    config = build(tmp_path, "data.train_batch_size=24")
    assert config.actor_rollout_ref.actor.ppo_mini_batch_size == 24


@pytest.mark.parametrize(("algorithm", "override", "named"), cases_of(__file__, "contradictions"))
def test_a_contradiction_or_unknown_key_is_explained(tmp_path, algorithm, override, named):
    with pytest.raises(ConfigError) as refused:
        build(tmp_path, *override.split(" and "), algorithm=algorithm)
    assert not missing(str(refused.value), *named)


@pytest.mark.parametrize(("override", "last"), cases_of(__file__, "last_steps"))
def test_the_last_step_is_that_of_the_epochs_or_an_earlier_one(tmp_path, override, last, capsys):
    sizes = ("data.train_batch_size=16", "trainer.total_epochs=2")
    assert steps_of(build(tmp_path, *sizes, override), [{}] * 70, None) == (0, last)
    assert ("fewer than the 9" in capsys.readouterr().out) is override.endswith("=9")


def test_drawn_rows_are_cut_before_the_draw(tmp_path):
    """As the data set does: the rows that are left are drawn by weight, some of them again."""
    rows = [{WHOSE: name, WEIGHT: weight} for name, weight in 48 * (("code", 1.0), ("sql", 2.0))]
    sizes = ("data.train_batch_size=16", "trainer.total_epochs=2", "data.train_max_samples=64")
    assert steps_of(build(tmp_path, *sizes), rows, None) == (0, 12)


def test_a_runner_needs_no_room_for_the_trainer_s_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr("training.start.check.SPARE_BYTES", 2**60)
    monkeypatch.setattr("training.start.check.check_store", lambda _: None)
    model = str(bundled_model(AGENT))
    for role in ("runner", "both"):
        plan = plan_of(tmp_path, model=model, store_role=role)
        with nullcontext() if role == "runner" else pytest.raises(ConfigError, match="GB free"):
            check_ready(plan, build(tmp_path), 0, 1)


def test_deterministic_promises_nothing_it_cannot_keep(tmp_path):
    with pytest.raises(ConfigError) as refused:
        build(tmp_path, deterministic=True, device="cuda")
    assert not missing(str(refused.value), "--deterministic", "--device")
    with pytest.raises(ConfigError) as refused:
        build(tmp_path, "actor_rollout_ref.rollout.max_num_seqs=64", deterministic=True)
    assert not missing(str(refused.value), "--deterministic", "max_num_seqs=1")


def test_a_micro_batch_keeps_its_episodes_when_they_are_longer(tmp_path):
    longer = "actor_rollout_ref.rollout.max_model_len=50000"
    size = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu"
    for own, expected in ((), 100_000), ((f"{size}=60000",), 60_000), ((f"{size}=20480",), 20_480):
        config = build(tmp_path, longer, *own, device="cuda")
        assert config.actor_rollout_ref.actor.ppo_max_token_len_per_gpu == expected
    with pytest.raises(ConfigError, match="whole number"):
        build(tmp_path, "actor_rollout_ref.rollout.max_model_len=null", device="cuda")
    assert build(tmp_path, longer).actor_rollout_ref.actor.ppo_max_token_len_per_gpu == 50_000


@pytest.mark.parametrize("text", ["3e-4", "3.0e-4", "0.0003"])
def test_a_learning_rate_is_a_number_however_it_is_written(tmp_path, text):
    config = build(tmp_path, f"actor_rollout_ref.actor.optim.lr={text}")
    assert config.actor_rollout_ref.actor.optim.lr == 0.0003


@pytest.mark.parametrize(("overrides", "bypass", "loss"), cases_of(__file__, "short_cuts"))
def test_vllm_s_log_probs_are_the_old_policy_s(tmp_path, monkeypatch, overrides, bypass, loss):
    """On the CPU, where the loss measures how far these two are apart."""
    for short in (False, True):
        monkeypatch.setattr(verl_config, "in_bfloat16", lambda model, short=short: short)
        config = build(tmp_path, *overrides, lora_rank=8 * short)
        assert config.algorithm.rollout_correction.bypass_mode is bypass
        assert config.actor_rollout_ref.actor.policy_loss.loss_mode == loss
    assert not build(tmp_path, device="cuda").algorithm.rollout_correction.bypass_mode


@pytest.mark.system
def test_a_disagreement_stops_before_heavy_imports():
    """The whole command line, in a process that reports whether torch, verl or ray were imported."""
    code = (
        "import sys; from training.start.command import main\n"
        f"code = main('sql', ['--ci-fast', '{TURNS}=7'])\n"
        "print(code, [name for name in ('torch', 'verl', 'ray', 'agentlightning') if name in sys.modules])"
    )
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "2 []"
    assert not missing(done.stderr, f"{TURNS}=7", "--max-turns")


@pytest.mark.parametrize(
    ("algorithm", "device", "advantage", "by_deviation", "loss", "mean", "clips"),
    [
        *cases_of(__file__, "names_of_keys"),
        ("dr_grpo", "cuda", "grpo", False, "vanilla", SEQUENCES, [0.2, 0.3]),
    ],
)
def test_a_name_is_verls_keys(
    tmp_path, algorithm, device, advantage, by_deviation, loss, mean, clips
):
    """bypass_mode is the plain loss with vLLM's log-probabilities, which the CPU takes."""
    config = build(tmp_path, algorithm=algorithm, device=device)
    actor = config.actor_rollout_ref.actor
    assert config.algorithm.adv_estimator == advantage
    assert config.algorithm.norm_adv_by_std_in_grpo is by_deviation
    assert (actor.policy_loss.loss_mode, actor.loss_agg_mode) == (loss, mean)
    assert [actor.clip_ratio_low, actor.clip_ratio_high] == clips
    whole = config.data.max_response_length
    bypass = device == "cpu" and algorithm != "gspo"
    assert config.algorithm.rollout_correction.bypass_mode is bypass
    assert actor.loss_scale_factor == (whole if algorithm == "dr_grpo" else None)
