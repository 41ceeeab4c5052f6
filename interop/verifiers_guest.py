"""Play tasks of a verifiers environment for interop/verifiers_agent.py: JSON lines in and out.

    ~/verifiers/bin/python interop/verifiers_guest.py '{"taskset": {"id": "textarena", ...}}' 64

Runs in verifiers' own environment. The lines are those of interop/lines.py; a task is a number.
"""

import asyncio
import itertools
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import openai
import verifiers.v1 as vf
from aiohttp import web
from lines import LINE_BYTES, Outside
from verifiers.v1.clients import EvalClientConfig, ModelContext
from verifiers.v1.configs.agent import agent_config_fields
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp
from verifiers.v1.runtimes import SubprocessConfig
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

KEY = "VERIFIERS_GUEST_KEY"

__all__ = ["Chat"]  # by which verifiers finds the harness


class ChatConfig(vf.HarnessConfig):
    pass


class Chat(vf.Harness[ChatConfig]):
    """A seat's program, in this process: verifiers' own starts a new one for each turn."""

    APPENDS_SYSTEM_PROMPT = SUPPORTS_MCP = SUPPORTS_RESUME = True
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Talk until a reply without calls of tools."""
        system, prompt = self.resolve_prompt(data)
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or []]
        urls = {name: {"url": url} for name, url in mcp_urls.items()}
        client = openai.AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0, timeout=None)
        async with client, AsyncExitStack() as stack:
            tools, known, servers = await connect_mcp({"mcpServers": urls}, stack)
            offered = {"tools": tools} if tools else {}
            while True:
                try:
                    completion = await client.chat.completions.create(
                        model=ctx.model, messages=messages, **offered
                    )
                except openai.APIStatusError as error:  # verifiers knows whether it is a stop
                    return vf.ProgramResult(exit_code=1, stdout="", stderr=str(error))
                said = completion.choices[0].message
                messages.append(said.model_dump(exclude_none=True))
                for call in said.tool_calls or []:
                    name, words = call.function.name, call.function.arguments
                    try:
                        result = await call_mcp(servers, known, name, json.loads(words))
                    except (KeyError, TypeError, ValueError) as error:
                        result = f"error: {name} cannot be called like this ({error!r})"
                    answer = {"role": "tool", "tool_call_id": call.id, "content": result}
                    messages.append(answer)
                if not said.tool_calls:
                    return vf.ProgramResult(exit_code=0, stdout="", stderr="")


@asynccontextmanager
async def endpoint(outside: Outside) -> AsyncIterator[str]:
    """Yield the address at which the program outside answers, for models named as episodes."""
    key = os.environ[KEY] = secrets.token_hex(16)

    async def complete(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": "another key"}, status=401)
        body = await request.json()
        answer = await outside.asked(int(body["model"]), body)
        if "error" in answer:
            return web.json_response({"error": {"message": answer["error"]}}, status=400)
        return web.json_response(answer["completion"])

    application = web.Application(client_max_size=LINE_BYTES)
    application.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def result_of(episode: vf.Episode) -> dict[str, Any]:
    """Return the rewards and metrics of an episode, and what failed."""
    errors = [*episode.errors]
    rewards: dict[str, float] = {}
    metrics: dict[str, float] = {}
    for trace in episode.traces:
        errors += trace.errors
        if trace.agent.trainable:
            rewards |= {name: one.value for name, one in trace.rewards.items() if one}
            metrics |= {name: one for name, one in trace.metrics.items() if one is not None}
    failed = "; ".join(f"{error.type}: {error.message}" for error in errors)
    return {"rewards": rewards, "metrics": metrics, "failed": "" if episode.ok else failed}


async def main() -> None:
    outside = Outside()
    config = resolve_env_config(json.loads(sys.argv[1]))
    for seat in agent_config_fields(config).values():
        seat.harness = seat.harness or ChatConfig(id="verifiers_guest")
        if "runtime" not in seat.model_fields_set:
            seat.runtime = SubprocessConfig()
    env = load_environment(config)
    tasks = list(itertools.islice(env.taskset, int(sys.argv[2])))
    listed = [task.data.model_dump(include={"name", "prompt"}) for task in tasks]
    async with endpoint(outside) as url, env.serving():
        client = EvalClientConfig(base_url=url, api_key_var=KEY)

        async def play(number: int, task: str) -> dict[str, Any]:
            context = ModelContext(model=str(number), client=client)
            return result_of(await env.run_episode(tasks[int(task)], context))

        await outside.serve(listed, play)


if __name__ == "__main__":
    asyncio.run(main())
