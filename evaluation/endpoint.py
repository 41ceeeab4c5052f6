"""A whole agent behind OpenAI's protocol, and a page at `/` (docs/evaluate-and-serve.md)."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import dropwhile, groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, Field, StringConstraints, ValidationError
from sse_starlette import EventSourceResponse
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from common.access import Guard, error_of, json_of
from common.command import UsageError
from episodes.agent import folder_of
from episodes.episode import Role, Task
from episodes.words import words_of
from evaluation.visits import ENDS, FOLDER, Asked, End, Host

MOST_BYTES = 512_000  # of a request
EXAMPLES = 3
MOST_PER_SECOND = 200  # requests of one address, which may be a proxy with many visitors behind it
PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
HEALTH = "/health"  # 200, or 503 while the model's server does not answer
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src "
    "'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action "
    "'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
NOT_KEPT = {"Cache-Control": "no-store"}
CUT = ("length", "max_turns", "context_overflow")  # stop reasons that OpenAI calls "length"

MOST_TEXT = 32_000  # characters
MOST_MESSAGES = 256
MOST_SHOWN = 80  # characters of a wrong value

Text = Annotated[str, StringConstraints(max_length=MOST_TEXT)]
EXPECTED = {  # of the fields below, for people
    "messages": f"a list of at most {MOST_MESSAGES} messages, each with role and content",
    "role": "system, developer, user, assistant or tool",
    "content": f"at most {MOST_TEXT} characters: a text, or a list of parts of type text",
    "model": "a name",
    "stream": "true or false",
    "n": "1",
    "temperature": "a number from 0 to 2",
    "case": "the id of a case",
}


class Part(BaseModel):
    type: Literal["text"]
    text: Text


def _joined(parts: list[Part]) -> str:
    text = "\n".join(part.text for part in parts)
    if len(text) > MOST_TEXT:
        raise ValueError
    return text


class Said(BaseModel):
    role: Role
    content: Text | Annotated[list[Part], AfterValidator(_joined)] | None = None

    @property
    def text(self) -> str:
        return str(self.content or "")


class Body(BaseModel):
    """The fields of a request that are read. Others are passed over."""

    model: str | None = None  # there is one
    messages: Annotated[list[Said], Field(max_length=MOST_MESSAGES)] = []
    stream: bool | None = None
    n: Literal[1] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    case: str | None = None


def build(host: Host, model: str, token: str | None, hosts: Sequence[str]) -> Guard:
    """Return the ASGI application. hosts: the names by which it may be reached, "*" for any."""

    names = dict(host.environment.names())
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*hosts])
    app.add_exception_handler(HTTPException, _refusal)
    for name, kind in PAGE.items():
        asset = _asset(FOLDER / (name or "page.html"), kind)
        app.add_api_route(f"/{name}", asset, response_model=None)

    @app.get("/v1/models")
    def models() -> Response:
        kind = {"object": "model", "created": 0, "owned_by": "medical-agent-rl"}
        return _json({"object": "list", "data": [{"id": host.agent.name, **kind}]})

    @app.get(HEALTH)
    def health() -> Response:
        return Response(status_code=200 if host.alive else 503)

    @app.get("/agent")
    def agent() -> Response:
        tasks = [*host.tasks.values()]
        words = words_of(folder_of(host.agent))
        return _json(
            {
                "agent": host.agent.name,
                "model": model,
                "converses": host.environment.converses,
                "turns": host.settings.max_turns,
                "language": words.language,
                "names": names,
                "ends": ENDS,
                "title": dict(words.title),
                "about": dict(words.about),
                "examples": examples_of(tasks),
                "cases": {task.id: task.question for task in tasks},
            }
        )

    @app.post("/v1/chat/completions", response_model=None)
    async def complete(request: Request) -> Response:
        body = await _body(request)
        asked = _asked(host, body)
        answer = Answer(host.agent.name)
        if body.stream:
            events = _events(host, asked, answer)
            return EventSourceResponse(events, sep="\n", headers=NOT_KEPT)
        return await _unless_gone(request, _whole(host, asked, answer))

    free = [HEALTH, *(f"/{name}" for name in PAGE)]
    return Guard(app, token, MOST_BYTES, free, most_per_second=MOST_PER_SECOND)


def examples_of(tasks: Sequence[Task]) -> list[str]:
    """Return the ids of a few tasks to begin with, of different types where there are as many."""
    by_type = {task.task_type: task.id for task in reversed(tasks)}
    first = [task.id for task in tasks if by_type[task.task_type] == task.id]
    return [*first, *(task.id for task in tasks if task.id not in first)][:EXAMPLES]


async def _body(request: Request) -> Body:
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "expected the Content-Type application/json")
    try:
        return Body.model_validate_json(await request.body())
    except ValidationError as error:
        raise HTTPException(400, wrong_field(error)) from None


def wrong_field(error: ValidationError) -> str:
    """Return a sentence about the first field that is wrong: what was seen, and was expected."""
    first = error.errors()[0]
    known = [part for part in first["loc"] if isinstance(part, int) or part in EXPECTED]
    place = ".".join(map(str, known)) or "body"
    names = [part for part in known if isinstance(part, str)]
    expected = EXPECTED[names[-1]] if names else "a JSON object"
    value = first["input"]
    if isinstance(value, bytes):  # the body, where it is not JSON
        value = value.decode(errors="replace")
    seen = "nothing" if first["type"] == "missing" else repr(value)
    if len(seen) > MOST_SHOWN:
        has_entries = isinstance(value, list | dict)
        size = f"{len(value)} entries" if has_entries else f"{len(str(value))} characters"
        seen = f"{seen[:MOST_SHOWN]}... ({size})"
    return f"{place}: got {seen}; expected {expected}"


def _asked(host: Host, body: Body) -> Asked:
    if body.model not in (None, host.agent.name):
        raise HTTPException(404, f"{body.model[:80]!r} is not the model {host.agent.name!r}")
    if body.case:
        return Asked([], case=body.case, temperature=body.temperature)
    spoken = [one for one in body.messages if one.role in ("user", "assistant")]
    # A greeting of the client's own is none of the agent's replies
    spoken = [*dropwhile(lambda one: one.role == "assistant", spoken)]
    if not host.environment.converses:
        spoken = [one for one in spoken if one.role == "user"][-1:]
    words: list[str] = []
    said: list[str] = []
    # Two messages of the visitor without a reply between them, as after an error, are one
    for role, messages in groupby(spoken, lambda one: one.role):
        texts = [one.text for one in messages]
        if role == "assistant":
            said += texts
        else:
            words.append("\n".join(texts))
    if not (words and words[0].strip()):
        raise HTTPException(400, "messages: expected one of the role user with text, or a case")
    return Asked(words, said, temperature=body.temperature)


class Answer:
    """The forms of one answer, as OpenAI words them."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.id = f"chatcmpl-{uuid.uuid4().hex}"
        self.created = int(time.time())

    def chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self._json("chat.completion.chunk", choice, **more)

    def whole(self, end: End, steps: list[Any]) -> str:
        message = {"role": "assistant", "content": end.content}
        choice = {"index": 0, "message": message, "finish_reason": finish_of(end)}
        told = vars(end) | {"steps": steps}
        return self._json("chat.completion", choice, usage=usage_of(end), agent=told)

    def _json(self, kind: str, choice: dict[str, Any], **more: Any) -> str:
        head = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return json_of({**head, "choices": [choice], **more})


def finish_of(end: End) -> str:
    return "length" if end.reason in CUT else "stop"


def usage_of(end: End) -> dict[str, int]:
    tokens = {"prompt_tokens": end.prompt_tokens, "completion_tokens": end.completion_tokens}
    return tokens | {"total_tokens": sum(tokens.values())}


async def _events(host: Host, asked: Asked, answer: Answer) -> AsyncGenerator[str, None]:
    try:
        async with aclosing(host.visit(asked)) as steps:
            async for step in steps:
                if not isinstance(step, End):
                    yield answer.chunk({}, step=step)
                elif step.failure:
                    yield error_of(step.failure, step.reason)
                else:
                    yield answer.chunk({"role": "assistant", "content": step.content})
                    yield answer.chunk({}, finish_of(step), usage=usage_of(step), agent=vars(step))
    except UsageError as error:
        yield error_of(str(error))
    yield "[DONE]"


async def _whole(host: Host, asked: Asked, answer: Answer) -> Response:
    steps: list[Any] = []
    try:
        async with aclosing(host.visit(asked)) as visit:
            async for step in visit:
                steps.append(step)
    except UsageError as error:
        raise HTTPException(400, str(error)) from None
    end = steps.pop()
    if end.failure:
        return Response(error_of(end.failure, end.reason), 502, media_type="application/json")
    return Response(answer.whole(end, steps), media_type="application/json")


async def _unless_gone(request: Request, work: Any) -> Response:
    async def gone() -> Response:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return Response(status_code=499)  # the client has left

    racing = [asyncio.ensure_future(work), asyncio.ensure_future(gone())]
    try:
        done, _ = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for one in racing:
            one.cancel()


def _asset(path: Path, kind: str) -> Any:
    return lambda: Response(path.read_bytes(), media_type=kind, headers=HEADERS)


def _json(value: Any) -> Response:
    return Response(json_of(value), media_type="application/json", headers=NOT_KEPT)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = error_of(str(error.detail))
    return Response(said, error.status_code, error.headers, media_type="application/json")
