"""Completions (not chat) of one model."""

from __future__ import annotations

from collections.abc import Callable

from common.llm.endpoint import Body, Connections, without_secrets
from common.llm.errors import LLMError, clean
from common.llm.retry import Patience

ATTEMPTS = 4
LONGEST_WAIT = 5.0  # seconds between two attempts


class Completions:
    """A client of one model. `timeout` is the budget in seconds of one completion."""

    def __init__(
        self, model: str, url: str, api_key: str | None = None, timeout: float = 60.0
    ) -> None:
        self.model = model
        self.url = url.rstrip("/")
        self.api_key = api_key
        self._timeout = timeout
        self._patience = Patience(ATTEMPTS, timeout, LONGEST_WAIT)
        self._connections = Connections()

    async def complete(self, body: Body, read: Callable[[str], str] = str.strip) -> str:
        """Return what `read` makes of the text of a completion. "" counts as unusable.
        Raises LLMError: after the attempts or the budget.
        """
        return await self._patience.ask(lambda: self._request(body, read), self.model)

    async def _request(self, body: Body, read: Callable[[str], str]) -> str:
        reply = await self._connections.post(
            f"{self.url}/completions",
            {"model": self.model, **body},
            timeout=self._timeout,
            key=self.api_key,
        )
        try:
            if text := read(reply["choices"][0]["text"]):
                return text
        except (LookupError, TypeError, AttributeError):
            pass  # the error is raised below
        who = without_secrets(self.url)
        words = clean(str(reply), self.api_key)
        raise LLMError(f"{who}: expected a completion, got {words}", "malformed")
