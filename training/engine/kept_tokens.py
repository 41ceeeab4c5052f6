"""vLLM's server, which reads the turns of an episode as the policy wrote them.

A request may name the tokens of the turn that it continues (`training.proxy.kept_turns`). They
stand in the prompt in place of what the chat template writes for these messages, and only what
follows is rendered. If the template shows an earlier turn otherwise than a latest one (Qwen3's
leaves out its thoughts), the template decides.
"""

import dataclasses
from argparse import Namespace
from typing import Any

import ray
from verl.workers.rollout.replica import RolloutReplicaRegistry
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer, vLLMReplica
from vllm.renderers.base import BaseRenderer

from training.proxy.kept_turns import KEPT, continued


class KeepingServer(vLLMHttpServer):
    """verl's server of vLLM, which keeps the tokens that requests name."""

    async def run_server(self, args: Namespace) -> None:
        keep_tokens()
        await super().run_server(args)


class KeepingReplica(vLLMReplica):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.server_class = ray.remote(KeepingServer)


def serve_kept_tokens() -> None:
    """Make verl's trainer of this process start servers that keep tokens."""
    RolloutReplicaRegistry.register("vllm", lambda: KeepingReplica)


def keep_tokens() -> None:
    """Make vLLM's renderers of this process keep the tokens that a request names."""
    render = BaseRenderer.render_chat_async

    async def render_kept(
        self: BaseRenderer, conversations: Any, chat_params: Any, *args: Any, **options: Any
    ) -> Any:
        variables = dict(chat_params.chat_template_kwargs)
        turn = variables.pop(KEPT, None)
        chat_params = dataclasses.replace(chat_params, chat_template_kwargs=variables)
        rendered = await render(self, conversations, chat_params, *args, **options)
        prompt = rendered[1][0]
        if turn is None or prompt["prompt_token_ids"][: len(turn["tokens"])] == turn["tokens"]:
            return rendered
        ended = {**variables, "add_generation_prompt": False}
        before_params = dataclasses.replace(chat_params, chat_template_kwargs=ended)
        messages = [conversations[0][: turn["messages"]]]
        _, (before,) = await render(self, messages, before_params, *args, **options)
        prompt["prompt_token_ids"] = continued(
            prompt["prompt_token_ids"],
            before["prompt_token_ids"],
            turn["tokens"],
            self.get_tokenizer().decode,
        )
        return rendered

    BaseRenderer.render_chat_async = render_kept
