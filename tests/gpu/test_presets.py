"""Every preset of a GPU is what verl and vLLM of the GPU lock accept, and needs nothing beside it.

`./check.sh gpu` installs that lock and runs this with its Python. Nothing is computed on a GPU, and
none is there: tests/gpu/conftest.py says what stands in for it.
"""

import asyncio
import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from episodes import registry
from training import serve
from training.setup.device import built_for
from training.setup.ports import free_port
from training.setup.reading import choose_reading
from training.start import command
from training.start.arguments import parse

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.nightly,
    pytest.mark.skipif(built_for() != "cuda", reason="the GPU lock is not installed: check.sh gpu"),
]

AGENTS = ("sql", "consultation", "diagnosis", "code")
# One machine each, but for the last
MACHINES = ("1", "2", "4", "8", "8 --n-nodes 2")
WAYS = ("", "--lora")
# What verl can use and this lock has not
ABSENT = ("flash_attn", "flash_attention", "cupy", "liger", "sglang", "apex")


class Started(Exception):
    """A run got as far as it gets without a GPU; it carries the arguments of `start`."""


@pytest.fixture
def resolved(monkeypatch, tmp_path, model, card):
    """Return what a training command resolves to, its agent, flags, settings, tree and plan."""

    def start(*arguments: Any) -> int:
        raise Started(*arguments)

    monkeypatch.setattr(command, "start", start)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setenv("AGL_SERVER_PORT", str(free_port(serve.HOST)))

    def resolve(name: str, *flags: str) -> tuple[Any, ...]:
        agent = registry.get(name)
        common = ("--device", "cuda", "--model", model, "--run-dir", str(tmp_path / "run"))
        with pytest.raises(Started) as started:
            command.train(agent, parse(agent, [*common, *flags]))
        agent, options, settings, config, plan, *_ = started.value.args
        choose_reading(plan.engine, plan.output.run_dir, config)
        return agent, options, settings, config, plan

    return resolve


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("machines", MACHINES)
@pytest.mark.parametrize("agent", AGENTS)
def test_verl_and_vllm_take_a_preset(agent, machines, way, resolved, monkeypatch):
    *_, config, plan = resolved(agent, "--n-gpus", *machines.split(), *way.split())
    in_flight = plan.store.n_runners * plan.store.concurrency
    assert in_flight >= config.data.train_batch_size * config.actor_rollout_ref.rollout.n
    names_nothing_absent(config)
    taken_by_verl(config)
    taken_by_vllm(config, monkeypatch)


@pytest.mark.parametrize("purpose", ["--ci", "--ci-fast"])
def test_the_short_presets_are_taken(purpose, resolved, monkeypatch):
    *_, config, _ = resolved("sql", purpose)
    names_nothing_absent(config)
    taken_by_verl(config)
    taken_by_vllm(config, monkeypatch)


def names_nothing_absent(config: DictConfig) -> None:
    values = " ".join(map(str, leaves(OmegaConf.to_container(config, resolve=True))))
    for name in ABSENT:
        assert importlib.util.find_spec(name) is None, f"the lock has {name} now"
        assert name not in values
    part = config.actor_rollout_ref.model
    assert not part.use_liger
    assert part.override_config.attn_implementation == "sdpa"


def leaves(tree: Any) -> list[Any]:
    if not isinstance(tree, dict | list):
        return [tree]
    found = []
    for branch in tree.values() if isinstance(tree, dict) else tree:
        found += leaves(branch)
    return found


def taken_by_verl(config: DictConfig) -> None:
    """verl's own checks, and its dataclasses of what its workers are made of."""
    from verl.checkpoint_engine import CheckpointEngineRegistry
    from verl.trainer.ppo.utils import need_reference_policy
    from verl.trainer.ppo.v1 import get_trainer_cls
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    OmegaConf.resolve(config)
    validate_config(config, need_reference_policy(config), False)
    get_trainer_cls(config.trainer.v1.trainer_mode)
    policy = config.actor_rollout_ref
    model = omega_conf_to_dataclass(policy.model)
    assert model.hf_config._attn_implementation == "sdpa"
    for part in (policy.actor, config.algorithm):
        omega_conf_to_dataclass(part)
    rollout = omega_conf_to_dataclass(policy.rollout)
    CheckpointEngineRegistry.get(rollout.checkpoint_engine.backend)


def taken_by_vllm(config: DictConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """verl's own server makes vLLM's command line; vLLM makes its configuration of that."""
    import ray
    from verl.workers.rollout.replica import RolloutMode
    from verl.workers.rollout.vllm_rollout import vllm_async_server

    class Server(vllm_async_server.vLLMHttpServer):
        async def run_server(self, args: Any) -> None:
            self.args = args

    job = SimpleNamespace(get_job_id=lambda: "1")
    monkeypatch.setattr(ray, "get_runtime_context", lambda: job)
    policy = config.actor_rollout_ref
    server = Server(policy.rollout, policy.model, RolloutMode.HYBRID, [], 0, 0, 1, 1, "0")
    asyncio.run(server.launch_server())
    engine = engine_of(server.args)
    assert engine.model_config.max_model_len == policy.rollout.max_model_len
    assert engine.scheduler_config.max_num_seqs == policy.rollout.max_num_seqs
    assert server.args.middleware == ["training.proxy.doors.Door"]


def engine_of(arguments: Any) -> Any:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext

    made = AsyncEngineArgs.from_cli_args(arguments)
    return made.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)


@pytest.mark.parametrize(
    ("agent", "flags"),
    [
        ("consultation", ("--patient", "served", "--patient-model")),
        ("diagnosis", ("--simulator", "served", "--simulator-model")),
    ],
)
def test_vllm_takes_a_partner_beside_the_policy(
    agent, flags, resolved, model, tmp_path, monkeypatch
):
    made, options, settings, config, _ = resolved(agent, *flags, model)
    beside = lambda: serve.serve_environment(made, settings, options, tmp_path, "cuda")  # noqa: E731
    engine = engine_of(served(beside, monkeypatch))
    share = config.actor_rollout_ref.rollout.gpu_memory_utilization
    assert engine.cache_config.gpu_memory_utilization == serve.BESIDE
    assert share + serve.BESIDE < 1


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_vllm_takes_what_serves_a_model(gpus, model, card, tmp_path, monkeypatch):
    start = lambda: serve.serve(model, tmp_path / "log", "cuda", n_gpus=gpus)  # noqa: E731
    arguments = served(start, monkeypatch)
    assert arguments.tensor_parallel_size == gpus
    assert arguments.tool_call_parser == "hermes"
    assert arguments.middleware == ["training.proxy.doors.ServedDoor"]
    if gpus == 1:  # more are a platform's to count
        engine_of(arguments)


def served(start: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the arguments that vLLM reads of the command that a server is started with."""
    from vllm.entrypoints.openai.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    words: list[str] = []

    def popen(line: list[str], **_: Any) -> Any:
        words.extend(line)
        raise Started

    monkeypatch.setattr(serve.subprocess, "Popen", popen)
    with pytest.raises(Started), start():
        pass
    module = words.index("vllm.entrypoints.openai.api_server")
    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(words[module + 1 :])
    validate_parsed_serve_args(arguments)
    return arguments
