"""Completions (not chat) of one model."""

from collections.abc import Callable
from contextlib import suppress

from common.llm.endpoint import Body, Connections, without_secrets
from common.llm.errors import LLMError, clean
from common.llm.retry import Patience

ATTEMPTS = 4
LONGEST_WAIT = 5.0  # seconds between two attempts


class Completions:
    """A client of one model. `timeout` is the budget in seconds of one completion."""

    def __init__(self, model: str, url: str, api_key: str | None, timeout: float) -> None:
        self.model = model
        self.url = url.rstrip("/")
        self.api_key = api_key
        self._patience = Patience(ATTEMPTS, timeout, LONGEST_WAIT)
        self._connections = Connections()

    async def complete(self, body: Body, read: Callable[[str], str] = str.strip) -> str:
        """Return what `read` makes of a completion; "" counts as unusable. Raises LLMError."""

        async def request() -> str:
            url = f"{self.url}/completions"
            asked = {"model": self.model, **body}
            reply = await self._connections.post(
                url, asked, timeout=self._patience.budget, key=self.api_key
            )
            text = ""
            with suppress(LookupError, TypeError, AttributeError):
                text = read(reply["choices"][0]["text"])
            if not text:
                words = clean(str(reply), self.api_key)
                who = without_secrets(self.url)
                raise LLMError(f"{who}: expected a completion, got {words}", "malformed")
            return text

        return await self._patience.ask(request, self.model)
