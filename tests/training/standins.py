"""What stands in for the engine: a vLLM that speaks its protocol, and verl's TransferQueue."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

MODEL = "tiny"


class StandInVllm:
    """Answers completions with token ids; keeps what it was asked and the keys it was shown.

    `before` is called with each request, `prompt` gives its prompt's token ids.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.healthy = True
        self.before: Callable[[dict[str, Any]], object] = lambda request: None
        self.prompt: Callable[[dict[str, Any]], list[int]] = lambda request: [1, 2, 3]
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(self, log_level="warning", lifespan="off"))
        self.thread = threading.Thread(target=self.server.run, args=([listening],), daemon=True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if scope["path"] == "/health":
            status, reply = 200 if self.healthy else 503, dict[str, Any]()
        else:
            headers = dict(scope["headers"])
            self.keys.append(headers.get(b"authorization", b"").decode())
            assert headers[b"content-type"] == b"application/json"  # vLLM takes nothing else
            status, reply = self.complete(json.loads(body))
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(reply).encode()})

    def complete(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(request)
        self.before(request)
        if request["messages"][-1]["content"] == "too long":
            message = "This model's maximum context length is 1024 tokens"
            return 400, {"error": {"message": message, "type": "BadRequestError", "code": 400}}
        number = len(self.requests)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "好"},
            "finish_reason": "stop",
            "token_ids": [7, number],
            "logprobs": log_probs(number) if request.get("logprobs") else None,
        }
        name = f"chatcmpl-{self.port}-{number}"
        reply = {"id": name, "object": "chat.completion", "created": 1, "model": MODEL}
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        prompt = self.prompt(request)
        return 200, {**reply, "prompt_token_ids": prompt, "choices": [choice], "usage": usage}

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


def log_probs(number: int) -> dict[str, Any]:
    """As vLLM writes them for two tokens."""
    empty: dict[str, Any] = {"bytes": [1], "top_logprobs": []}
    values = (-0.5, -float(number))
    return {"content": [{"token": "好", "logprob": value, **empty} for value in values]}


@contextmanager
def standing(count: int) -> Iterator[list[StandInVllm]]:
    """So many of them, that listen."""
    servers = [StandInVllm() for _ in range(count)]
    for server in servers:
        server.thread.start()
    while not all(server.server.started for server in servers):
        threading.Event().wait(0.01)
    yield servers
    for server in servers:
        server.stop()


class Queue:
    """verl's TransferQueue in memory: by partition and key, the fields and the tag of a row."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.tags: dict[tuple[str, str], dict[str, Any]] = {}
        self.puts: list[list[str]] = []  # the keys of each request that put fields

    def kv_batch_put(
        self, keys: list[str], partition_id: str, fields: Any = None, tags: Any = None
    ) -> Any:
        from transfer_queue import KVBatchMeta

        for number, key in enumerate(keys):
            if fields is not None:
                row = self.rows.setdefault((partition_id, key), {})
                row |= {name: field(fields, name, number) for name in fields.keys()}  # noqa: SIM118 (a TensorDict)
            if tags is not None:
                self.tags.setdefault((partition_id, key), {}).update(tags[number])
        if fields is not None:
            self.puts.append(keys)
        tagged = [self.tags.get((partition_id, key), {}) for key in keys]
        return KVBatchMeta(keys=keys, partition_id=partition_id, tags=tagged)

    def kv_batch_get(self, keys: list[str], partition_id: str, select_fields: Any = None) -> Any:
        """The rows of these keys; of the fields asked for, those that they have."""
        import torch
        from tensordict import NonTensorStack, TensorDict

        rows = [self.rows[partition_id, key] for key in keys]
        found: dict[str, Any] = {}
        for name in select_fields or rows[0]:
            values = [row[name] for row in rows if name in row]
            if values and isinstance(values[0], torch.Tensor):
                found[name] = torch.nested.as_nested_tensor(values, layout=torch.jagged)
            elif values:
                found[name] = NonTensorStack(*values)
        return TensorDict(found, batch_size=[len(rows)])

    def kv_list(self, partition_id: str | None = None) -> dict[str, dict[str, Any]]:
        """The tags of every partition's keys."""
        found: dict[str, dict[str, Any]] = {}
        for (partition, key), tag in self.tags.items():
            found.setdefault(partition, {})[key] = dict(tag)
        return found

    def kv_clear(self, keys: list[str], partition_id: str) -> None:
        for key in keys:
            self.rows.pop((partition_id, key), None)
            self.tags.pop((partition_id, key), None)

    def batch(self, partition: str = "train") -> Any:
        """All sequences of a partition as verl samples them."""
        from transfer_queue import KVBatchMeta

        keys = [key for place, key in self.rows if place == partition]
        tags = [self.tags[partition, key] for key in keys]
        return KVBatchMeta(keys=keys, partition_id=partition, tags=tags)

    def statuses(self, partition: str) -> dict[str, str]:
        """What prompt groups are tagged with."""
        return {
            key: tag["status"]
            for (place, key), tag in self.tags.items()
            if place == partition and tag.get("is_prompt")
        }


def field(fields: Any, name: str, number: int) -> Any:
    """Row `number` of a column of a TensorDict, as plain as it was."""
    column = fields.get(name)
    if getattr(column, "is_nested", False):
        return column.unbind()[number]
    value = column[number]
    return getattr(value, "data", value) if type(value).__name__ == "NonTensorData" else value
