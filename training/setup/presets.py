"""Presets of a training run by purpose and hardware (`verl.toml`), and algorithms by name
(`algorithms.toml`). An agent brings its own sizes.

CPU presets were run. GPU presets are reasoned for one 80 GB card and were not run.
"""

from typing import Any

from common.toml import table_beside
from episodes.agent import Agent

GPU_MODEL = "Qwen/Qwen3-0.6B"

ROLLOUT = "actor_rollout_ref.rollout"
ACTOR = "actor_rollout_ref.actor"
MICRO_BATCH = f"{ACTOR}.ppo_max_token_len_per_gpu"  # in tokens
# Tokens of a thought before a reply. Most of Qwen3's end within these, nearly none within 768
THOUGHT_TOKENS = 2048
Tables = dict[str, dict[str, dict[str, Any]]]
VERL_DEFAULTS: Tables = table_beside(__file__, "verl.toml")
ALGORITHMS: Tables = table_beside(__file__, "algorithms.toml")


def choose(
    agent: Agent,
    purpose: str,
    device: str,
    n_gpus: int,
    n_nodes: int = 1,
    large: bool = False,
    thoughts: int = 0,
) -> dict[str, Any]:
    """Return verl keys for a purpose (`smoke`, `ci`, `full`) on a device (`cpu`, `cuda`).

    On the CPU `n_gpus` are processes. thoughts: tokens of an episode beside its replies.
    """
    sizes = agent.sizes(device)
    defaults = VERL_DEFAULTS["preset"]
    response = sizes.response + thoughts
    longest = sizes.prompt + response
    small = purpose == "smoke" or (purpose == "ci" and device == "cuda")
    most = max(int(count) for count in VERL_DEFAULTS["gpus"] if int(count) <= n_gpus * n_nodes)
    gpu_sizes = VERL_DEFAULTS["gpus"][str(most)]
    return {
        **defaults["every"],
        "data.max_prompt_length": sizes.prompt,
        "data.max_response_length": response,
        f"{ROLLOUT}.max_model_len": longest,
        "trainer.project_name": f"{agent.name}_agent",
        "trainer.n_gpus_per_node": n_gpus,
        "trainer.nnodes": n_nodes,
        # Ray only counts these: verl reserves 3 for each GPU, and its many actors are mostly idle
        "ray_kwargs.ray_init.num_cpus": 32 + 4 * n_gpus,
        **defaults[device],
        **(gpu_sizes if device == "cuda" else {}),
        # Attention costs the square of what is packed, which a small model notices: its micro-batch
        # holds one full episode. A large one computes the prompt, which episodes share, less often.
        MICRO_BATCH: 2 * longest if large or device == "cuda" else f"${{{ROLLOUT}.max_model_len}}",
        **(defaults["large"] if large and device == "cpu" else {}),
        **(defaults["small"] if small else {}),
        **defaults[purpose],
    }


def keys_of(algorithm: str | None) -> dict[str, Any]:
    """Return the keys of an algorithm, {} for None, which leaves the preset's."""
    if algorithm is None:
        return {}
    table = ALGORITHMS[algorithm]
    return {**table["fixed"], **table.get("usual", {})}
