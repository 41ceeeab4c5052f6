"""Doors between the parts of a run that can be shut, and a judge and a partner that can fail.

They live on one event loop in a thread of the harness. `fault` is set from outside.
"""

import asyncio
import json
import threading
import zlib
from collections.abc import Coroutine
from itertools import count
from random import Random
from typing import Any

import aiohttp
from aiohttp import web

from bench.rollout_sides.standin_llm import FixedLatencyLlm
from tests.common.llm_server import completion
from tests.runs import free_port

SHARE = 0.1  # of the calls, where a tenth fails
SLOW_SECONDS = 5.0
LATE_SECONDS = 3.0  # a trainer waits 10 s for spans
LOST_SECONDS = 20.0
MIXED_SECONDS = 2.0
TRACES = "/v1/traces"
LLM = FixedLatencyLlm(0, 3)
REPLY_SECONDS = 0.25  # of the stand-in policy
KEPT = ("content-type", "authorization", "retry-after")


class Service:
    """Answers at `url` on the loopback address. With the fault `away`, nobody listens there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seed: int) -> None:
        self.loop, self.random, self.fault, self._numbers = loop, Random(seed), None, count()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._site: web.TCPSite | None = None
        self._run(self._open())

    fault: str | None
    reply_seconds = REPLY_SECONDS

    def set(self, fault: str | None) -> None:
        self.fault = fault
        if fault == "away" and self._site is not None:
            self._run(self._site.stop())
            self._site = None
        elif fault != "away" and self._site is None:
            self._run(self._listen())

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=30)

    async def _open(self) -> None:
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await self._site.start()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        return (
            self.drop(request) if self.fault == "away" else await self.answer(request)
        )  # it came on an old connection

    async def answer(self, request: web.Request) -> web.StreamResponse:
        raise NotImplementedError

    def drop(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)

    def fails(self) -> bool:
        """Whether this call fails, by the fault of now."""
        return self.fault == "fails" or (
            self.fault == "a tenth fails" and self.random.random() < SHARE
        )


class Scores(Service):
    """A judge: a score in [0, 1] that depends on the answer alone."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        said = (await request.json())["response"]
        if self.fault == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        if self.fails():
            return web.json_response({"error": "down"}, status=500)
        if self.fault == "nonsense":
            return web.json_response({"score": "very good"})
        return web.json_response(
            {"score": 1.0 if self.fault == "likes all" else zlib.crc32(said.encode()) % 101 / 100}
        )


class Says(Service):
    """A patient that is a model, and knows nothing."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        if self.fault == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        if self.fails():
            return web.json_response({"error": {"message": "down"}}, status=500)
        said = json.dumps({"kind": "unknown", "facets": [], "text": "不清楚。"}, ensure_ascii=False)
        return web.json_response(text=completion("{{{" if self.fault == "nonsense" else said))


class Doctor(Service):
    """A policy behind vLLM's protocol: asks two questions and concludes.

    Every prompt extends what was before it.
    """

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.Response()
        messages = (await request.json())["messages"]
        turn = sum(message["role"] == "assistant" for message in messages)
        drawn = self.random.choice(["感冒", "偏头痛", "阑尾炎", "肺炎"])
        texts = ["问题：哪里不舒服？", f"问题：多久了？{drawn}？", f"诊断：{drawn}\n建议：多休息"]
        text = f"<answer>{texts[min(turn, 2)]}</answer>"
        prompt = [
            token for message in messages for token in _tokens(message["role"], message["content"])
        ]
        await asyncio.sleep(self.reply_seconds)
        whole = json.loads(completion(text))
        whole["choices"][0]["token_ids"] = _tokens("assistant", text)
        return web.json_response(
            whole | {"prompt_token_ids": prompt, "id": f"call-{next(self._numbers)}"}
        )


class Querier(Service):
    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.Response()
        await asyncio.sleep(self.reply_seconds)
        return web.json_response(LLM.complete((await request.json())["messages"]))


def _tokens(role: str, text: str) -> list[int]:
    return [*text.encode()] if role == "assistant" else [256, *text.encode(), 257]


class Door(Service):
    """Hands requests on to `target`.

    With the fault "cut" nothing passes either way. At its end it breaks off what was under way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, seed: int, target: str) -> None:
        self.target = target
        self._session: aiohttp.ClientSession | None = None
        self._late: set[asyncio.Task[Any]] = set()
        super().__init__(loop, seed)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        await self._wait(request)
        if self.fails():
            return web.Response(status=503)
        traces = request.path == TRACES
        late = {"late": LATE_SECONDS, "lost": LOST_SECONDS}.get(self.fault or "")
        if traces and late:
            task = asyncio.create_task(self._later(request, body, late))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return web.Response(content_type="application/x-protobuf")
        if traces and self.fault == "out of order":
            await asyncio.sleep(self.random.uniform(0, MIXED_SECONDS))
        if traces and self.fault == "twice":
            await self._pass(request, body)
        try:
            answer = await self._pass(request, body)
        except aiohttp.ClientError:
            return self.drop(request)
        if self.fault == "answers lost" and self.random.random() < SHARE / 2:
            return self.drop(request)
        await self._wait(request)
        return answer

    async def _wait(self, request: web.Request) -> None:
        if self.fault == "cut":
            while self.fault == "cut":
                await asyncio.sleep(0.1)
            self.drop(request)

    async def _later(self, request: web.Request, body: bytes, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._pass(request, body)

    async def _pass(self, request: web.Request, body: bytes) -> web.Response:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        headers = {name: value for name, value in request.headers.items() if name.lower() in KEPT}
        url = self.target + request.path_qs
        async with self._session.request(request.method, url, data=body, headers=headers) as reply:
            sent = {name: value for name, value in reply.headers.items() if name.lower() in KEPT}
            return web.Response(status=reply.status, body=await reply.read(), headers=sent)


class Services:
    def __init__(self, seed: int) -> None:
        self.seed, self.loop = seed, asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def judge(self) -> Scores:
        return Scores(self.loop, self.seed)

    def partner(self) -> Says:
        return Says(self.loop, self.seed)

    def policy(self, agent: str) -> Service:
        """Start a policy of the consultation agent, or of the SQL agent."""
        return (Doctor if agent == "consultation" else Querier)(self.loop, self.seed)

    def door(self, target: str) -> Door:
        return Door(self.loop, self.seed, target)
