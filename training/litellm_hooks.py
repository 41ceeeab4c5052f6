"""What this project changes of litellm's proxy, by the means litellm and FastAPI offer for it.

- `TakeTokenIds`: a callback that takes token ids and log-probabilities out of a reply before it is written.
- `leave_out_keys`: no key is asked for, so the search for its rights, route by route, is left out. The proxy has no
  keys to begin with: it serves the runners of one training run.

Used by `training.proxy`. Measured by `bench.rollouts` (`proxy_speedup`).
"""

from __future__ import annotations

from typing import Any

from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import LitellmUserRoles, UserAPIKeyAuth
from litellm.proxy.proxy_server import app, user_api_key_auth

from training.middleware import TAKEN, Taken


class TakeTokenIds(CustomLogger):
    """Moves a completion's token ids and log-probabilities into the call's `TAKEN`."""

    async def async_post_call_success_hook(self, data: Any, user_api_key_dict: Any, response: Any) -> Any:
        """litellm calls this with its ModelResponse; returns it without them, or as it is where it has none."""
        taken = TAKEN.get(None)
        prompt_ids = getattr(response, "prompt_token_ids", None)
        if taken is None or not prompt_ids or not response.choices:
            return response
        choice = response.choices[0]
        response_ids = (choice.provider_specific_fields or {}).pop("token_ids", None)
        if response_ids:
            taken.append(Taken(str(response.id), prompt_ids, response_ids, _log_probs(choice)))
            del response.prompt_token_ids
            choice.logprobs = None
        return response


def _log_probs(choice: Any) -> list[float] | None:
    found = getattr(choice, "logprobs", None)
    return [float(token.logprob) for token in found.content] if found and found.content else None


def leave_out_keys() -> None:
    """Let every call of this process' litellm proxy pass without a key."""
    app.dependency_overrides[user_api_key_auth] = _anyone


async def _anyone() -> UserAPIKeyAuth:
    return UserAPIKeyAuth(user_role=LitellmUserRoles.PROXY_ADMIN)  # what litellm says where no key is set
