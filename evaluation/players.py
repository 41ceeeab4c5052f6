"""Who plays in an evaluation: a served model, an endpoint, a provider, gold episodes, a baseline."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.command import UsageError, number, positive
from common.language import said
from common.llm.endpoint import providers, without_secrets
from common.settings import Settings, reveal
from episodes import registry
from episodes.agent import Agent, Environment, Options
from episodes.joint import JOINED
from episodes.policy import Endpoint, endpoint_elsewhere
from episodes.turns import turns
from evaluation.run_folder import TRAINING, Run
from training.serve import ALONE, BESIDE, servable, serve, serve_environment
from training.setup.model_folder import digest_of
from training.setup.reading import thought_tokens

MODELS = "model folder, run folder, checkpoint, hub id, litellm name, or name at --base-url"
SERVED_ALONE = ("thinking", "tool_parser")  # flags that change only a model that is served here
TEMPERATURE = number(float, lambda value: 0 <= value <= 2, "from 0 to 2")


@dataclass(frozen=True)
class Player:
    """`kind`: "served" (by our vLLM), "endpoint", "litellm", "gold" or "baseline"."""

    kind: str
    name: str
    base_url: str | None = None

    @property
    def samples(self) -> bool:
        """Whether another sample of the same task may differ."""
        return self.kind not in ("gold", "baseline")

    def fingerprint(self) -> dict[str, Any]:
        """Return what distinguishes this player, for a folder also a hash of its content."""
        address = self.base_url and without_secrets(self.base_url)
        found = {"model": self.name, "kind": self.kind, "base_url": address}
        if self.kind == "served":
            here = Path(self.name).is_dir()
            parts = ("*.safetensors", "*.json", "*.jinja")
            found["model_digest"] = digest_of(Path(self.name), parts) if here else None
        return found


def add_flags(parser: ArgumentParser, settings: Settings) -> None:
    """Add the flags of a command that lets a model play."""
    add = parser.add_argument_group("model").add_argument
    where = "an OpenAI-compatible endpoint, ending in /v1; its key is OPENAI_API_KEY"
    add("--base-url", metavar="URL", help=where)
    drawn = "default: TEMPERATURE, as in training"
    add("--temperature", type=TEMPERATURE, default=settings.temperature, metavar="T", help=drawn)
    most = "tokens of one reply; default: as in training"
    add("--max-tokens", type=positive(int), default=settings.max_tokens, metavar="N", help=most)
    budget = "turns of an episode, or a range; default: MAX_TURNS, else the agent's own"
    add("--max-turns", type=turns, metavar="N|A-B", help=budget)
    device = "where a model is served that is started here"
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help=device)
    thinking = "let a model that is served here think, with longer replies"
    add("--thinking", action="store_true", help=thinking)
    parser_help = "vLLM's parser of its tool calls; default: the one that fits its chat template"
    add("--tool-parser", metavar="NAME", help=parser_help)
    gpus = "GPUs that this model is split over; default: 1"
    add("--n-gpus", type=positive(int), default=1, metavar="N", help=gpus)


def find_player(model: str, base_url: str | None, settings: Settings) -> Player:
    """Return the player of `--model`. Raises UsageError: no folder, provider, hub id or name."""
    if not model:
        raise UsageError(f"the model has no name; expected a {MODELS}")
    if not base_url and Path(model).is_dir():
        return Player("served", str(Path(model).resolve()))
    if not base_url and "/" in model:
        return Player("litellm" if model.split("/")[0] in providers() else "served", model)
    address = (base_url or settings.openai_base_url or "").strip().rstrip("/")
    if address and not re.match(r"https?://.", address, re.IGNORECASE):
        shown = without_secrets(address)
        raise UsageError(f"the base URL is {shown!r}; expected one like http://HOST:8000/v1")
    if address:
        return Player("endpoint", model, address)
    raise UsageError(
        f"--model {model!r} is no folder, no hub id (owner/name) and no "
        "litellm name (provider/name); for a model of an OpenAI-compatible "
        "endpoint give --base-url, or set OPENAI_BASE_URL"
    )


def model_player(agent: Agent, model: str, base_url: str | None, settings: Settings) -> Player:
    """Return a model as an agent's player. A run means its latest checkpoint.
    Raises UsageError: not a model, or not one that this agent can use.
    """
    player = find_player(model, base_url, settings)
    if player.kind == "served":
        refuse_run_of_another(agent, Path(player.name))
        return Player("served", servable(player.name, bool(agent.tools)))
    return player


def refuse_run_of_another(agent: Agent, model: Path) -> None:
    """Raise UsageError if a run, or a checkpoint in it, is of agents that this one is not among."""
    for folder in (model, model.parent.parent):
        trained = set(Run(folder, TRAINING, "", folder).agent.split(JOINED))
        # Else the project has a name of the user's own
        if trained <= set(registry.names()) and agent.name not in trained:
            raise UsageError(
                f"{folder} is a run of the {JOINED.join(sorted(trained))} agent; expected one of "
                f"the {agent.name} agent. To let its model play as another agent, name the "
                "checkpoint's actor/huggingface"
            )


def reply_tokens(agent: Agent, player: Player, thinking: bool) -> int:
    """Return the tokens of one reply: the bundled model's if the model's folder has as few
    positions, else at most a quarter of its positions.
    """
    small = agent.sizes("cpu")
    tokens = agent.sizes("cuda").reply
    with contextlib.suppress(OSError):
        config = json.loads((Path(player.name) / "config.json").read_text(encoding="utf-8"))
        positions = (config.get("text_config") or config).get("max_position_embeddings")
        if positions is not None and positions <= small.prompt + small.response:
            tokens = small.reply
        elif positions is not None:
            tokens = min(tokens, int(positions) // 4)
    if thinking and player.kind == "served":
        tokens += thought_tokens(player.name, bool(agent.tools))
    return tokens


@contextlib.contextmanager
def opened_environment(
    agent: Agent, own: Options, folder: Path, settings: Settings, device: str
) -> Iterator[Environment]:
    """Yield the checked environment. What its flags name is served, with logs in `folder`."""
    with (
        serve_environment(agent, settings, own, folder, device) as options,
        contextlib.closing(agent.open(settings, options, evaluating=True)) as environment,
    ):
        asyncio.run(environment.check())
        yield environment


@contextlib.contextmanager
def opened(
    agent: Agent, player: Player, folder: Path, arguments: Namespace, settings: Settings
) -> Iterator[tuple[Environment, Endpoint | None]]:
    """Yield the checked environment and the player's endpoint, None for a player without a model.
    Servers run until the block ends. Their logs are in `folder`.
    """
    own = registry.own_options(agent, arguments)
    for name in SERVED_ALONE:
        if player.kind != "served" and getattr(arguments, name):
            flag = f"--{name.replace('_', '-')}"
            print(f"{flag} is of models that are served here: it changes nothing", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        opening = opened_environment(agent, own, folder, settings, arguments.device)
        environment = stack.enter_context(opening)
        if not player.samples:
            yield environment, None
            return
        sampling = {"temperature": arguments.temperature, "max_tokens": arguments.max_tokens}
        if player.kind == "litellm":
            yield environment, endpoint_elsewhere(player.name, **sampling)
        elif player.kind == "endpoint":
            key = reveal(settings.openai_api_key)
            name = f"openai/{player.name}"
            yield environment, endpoint_elsewhere(name, player.base_url, key, **sampling)
        else:
            log = folder / "vllm.log"
            starting = said("starting vLLM for {model}, log in {log}", model=player.name, log=log)
            print(starting, file=sys.stderr, flush=True)
            server = serve(
                player.name,
                log,
                device=arguments.device,
                n_gpus=arguments.n_gpus,
                tools=bool(agent.tools),
                memory=ALONE - BESIDE if agent.services(settings, own) else ALONE,
                thinking=arguments.thinking,
                tool_parser=arguments.tool_parser,
            )
            started = stack.enter_context(server)
            # No seed of its own for each episode: vLLM's CPU worker dies of one when a prompt is
            # read in two parts.
            extra = {"top_k": -1}
            yield environment, Endpoint(started.base_url, started.name, **sampling, extra=extra)
