"""Token ids and log-probabilities of an answered call: taken out of the reply before it is written for the agent.

They are most of a reply and only training wants them. Whoever makes the reply takes them out and leaves them in the
call's `TAKEN`, where `training.middleware` finds them: `take_from_body` for a reply of vLLM as it came (`--proxy
direct`), `training.litellm_hooks` for litellm, which would walk through every number several times to write them.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

import orjson


class Taken(NamedTuple):
    """A reply's id, token ids of prompt and reply, and the log-probabilities of the reply's tokens, if asked for."""

    response_id: str
    prompt_ids: list[int]
    response_ids: list[int]
    log_probs: list[float] | None


TAKEN: ContextVar[list[Taken]] = ContextVar("TAKEN")  # a list for each call; empty where a reply has no token ids


def take_from_body(body: bytes) -> bytes:
    """Move what vLLM wrote about tokens from a completion into the call's `TAKEN`.

    Any other body stays as it is, and so does the reply to a call that belongs to no rollout.
    """
    call = TAKEN.get(None)
    if call is None:
        return body
    try:
        reply = orjson.loads(body)
        taken = take(reply)
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        return body
    if taken is None:
        return body
    call.append(taken)
    return orjson.dumps(reply)


def take(reply: dict[str, Any]) -> Taken | None:
    """Take them out of a parsed completion of vLLM; None, and nothing taken, where it has no token ids.

    Raises:
        KeyError, IndexError, TypeError: this is no completion.
    """
    choice = reply["choices"][0]
    if not reply.get("prompt_token_ids") or not choice.get("token_ids"):
        return None
    log_probs = choice.pop("logprobs", None)
    found = [float(token["logprob"]) for token in log_probs["content"]] if log_probs else None
    return Taken(str(reply.get("id")), reply.pop("prompt_token_ids"), choice.pop("token_ids"), found or None)
