"""Whether an update fits the memory of a GPU, computed before anything is loaded.

While verl trains, 32-bit weights, gradients and AdamW's two moments are on the cards, whatever is
offloaded between the phases, beside the logits of one micro-batch. The policy's vLLM sleeps
meanwhile; a partner's does not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from omegaconf import DictConfig, OmegaConf

from episodes.agent import Service
from training.setup.folder_files import read_json
from training.setup.model_folder import find_model
from training.setup.plan import ConfigError
from training.setup.weights import parameters_of

# Bytes of a parameter: 4 the weight, 4 its gradient, 8 AdamW's moments, 2 the copy that computes
TRAINED, FROZEN = 18, 6
# Bytes of a logit and of its gradient, in bfloat16
LOGIT = 4
# Shares of a card that vLLM takes: a server's alone; a partner's beside a policy, whose own takes
# half of it.
ALONE, BESIDE = 0.9, 0.25
SPARE = 0.03  # of a card: CUDA's own, and what is fragmented
MOST_GPUS = 64


def bytes_of_update(
    parameters: int, vocabulary: int, tokens: int, gpus: int, frozen: bool, critic: bool
) -> int:
    """Return the bytes that an update takes on each of `gpus` cards.

    frozen: only an adapter is trained. critic: one of the same size stays on the card.
    """
    state = parameters * (FROZEN if frozen else TRAINED) // gpus
    return state * (2 if critic else 1) + tokens * vocabulary * LOGIT


def share_of_partners(services: Sequence[Service], gpus: int) -> float:
    """Return the share of the policy's first card that the models served beside it take.

    Raises ConfigError: one is to have cards of its own that are among the first `gpus`, which Ray
    gives to the policy.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(gpus)))
    policys = visible.split(",")[:gpus]
    share = 0.0
    for service in services:
        if not service.gpus:
            share += BESIDE
        elif set(service.gpus.split(",")) & set(policys):
            raise ConfigError(
                f"GPUs {service.gpus} are to serve {service.model} alone, but the policy takes "
                f"{', '.join(policys)} (--n-gpus {gpus}); name others, or none for a share of these"
            )
    return share


def check_gpu_memory(
    config: DictConfig, model: str, card: int | None = None, taken: float = 0.0
) -> None:
    """Raise ConfigError if an update does not fit the memory of this machine's smallest GPU, or of
    a `card` of so many bytes, of which others have `taken` a share.
    """
    card = smallest_card() if card is None else card
    parts = config.actor_rollout_ref
    # With verl's own policy of offloading, weights and optimizer stay in the machine's memory
    if card is None or OmegaConf.select(parts, "actor.fsdp_config.offload_policy"):
        return
    gpus = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    folder = find_model(model)
    shape = read_json(folder / "config.json", "is this a model folder?")
    vocabulary = int((shape.get("text_config") or shape).get("vocab_size", 0))
    critic = config.algorithm.adv_estimator == "gae" and not config.critic.fsdp.param_offload
    parameters = parameters_of(folder)
    tokens = int(parts.actor.ppo_max_token_len_per_gpu)
    if OmegaConf.select(parts, "model.use_fused_kernels"):
        tokens = 0  # no logits are made

    def needed(count: int, frozen: bool) -> int:
        return bytes_of_update(parameters, vocabulary, tokens, count, frozen, critic)

    room = int(card * (1 - SPARE - taken))
    frozen = bool(parts.model.lora_rank)
    if needed(gpus, frozen) <= room:
        return
    ways = [] if frozen or needed(gpus, True) > room else ["--lora"]
    more = [count for count in range(gpus + 1, MOST_GPUS + 1) if needed(count, frozen) <= room]
    ways += [f"{more[0]} GPUs (--n-gpus, --n-nodes)"] if more else []
    ways.append("a smaller actor_rollout_ref.actor.ppo_max_token_len_per_gpu, or a smaller model")
    raise ConfigError(
        f"an update of {model} ({parameters / 1e9:.2f}e9 parameters) takes "
        f"{needed(gpus, frozen) / 1e9:.0f} GB on each of {gpus} GPUs, of which "
        f"{tokens * vocabulary * LOGIT / 1e9:.0f} GB are logits, and a card has "
        f"{room / 1e9:.0f} of {card / 1e9:.0f} GB for it; take {', '.join(ways)}"
    )


def smallest_card() -> int | None:
    """Return the bytes of this machine's smallest GPU, None if the driver's tool does not say."""
    if not shutil.which("nvidia-smi"):
        return None
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return min(int(line) for line in asked.stdout.split()) * 2**20
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
