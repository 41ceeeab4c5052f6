"""What can go wrong when an LLM is asked, told in one line without keys.

from common.llm import LLMError
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal

from common.command import Failure, UsageError
from common.llm_pace import retry_after

Cause = Literal["timeout", "connection", "refused", "status", "malformed", "setup"]

PASSING_STATUS = {408, 409, 429}  # and every 5xx: may pass when asked again
SHOWN = 300  # characters of an endpoint's words in a message
SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
SHORTEST_SECRET = 6  # shorter values of such variables are words like "true", which must not be blotted out
# litellm gives these to errors of very different providers; their texts are all that tells them apart.
NO_CONNECTION = re.compile(r"Connection error|Cannot connect to host")
LITELLMS_NAMES = re.compile(r"^(?:litellm\.)?(?:\w+Error: )+")


class LLMError(Failure):
    """No usable answer; the message holds no secret.

    `cause`: timeout (the budget is over), connection, refused (a 4xx that asking again does not mend), status (another
    HTTP failure that stayed), malformed (replies that do not fit the schema), setup (this side: no model, no cache).
    `status` is the HTTP status where there was one, `retry_after` the seconds the endpoint asked to wait.
    """

    def __init__(self, message: str, cause: Cause, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        self.status, self.retry_after = status, retry_after
        if cause == "setup":
            self.exit_code = UsageError.exit_code

    @property
    def may_pass(self) -> bool:
        """Whether asking again can help."""
        return self.cause not in ("refused", "setup")


def explain(error: Exception, litellm: Any, model: str, api_key: str | None) -> LLMError:
    """litellm's exception, of whatever provider, as ours."""
    status = getattr(error, "status_code", None)
    text = LITELLMS_NAMES.sub("", clean(str(error), api_key))
    if isinstance(error, litellm.Timeout):
        return LLMError(f"{model}: no reply in time", "timeout")
    if isinstance(error, litellm.APIConnectionError) or NO_CONNECTION.search(text):
        return LLMError(f"{model}: no connection ({text})", "connection")
    if "Missing credentials" in text:
        return LLMError(
            f"{model}: no API key; set TEACHER_API_KEY (any word where the endpoint asks for none)", "setup"
        )
    refused = status is not None and 400 <= status < 500 and status not in PASSING_STATUS
    said = f"HTTP {status}: {text}" if status else text
    return LLMError(f"{model}: {said}", "refused" if refused else "status", status, retry_after(_header(error)))


def clean(text: str, api_key: str | None) -> str:
    """An endpoint's words in one short line, without keys: some endpoints repeat the one they were sent."""
    named = (value for name, value in os.environ.items() if name.upper().endswith(SECRET_NAMES))
    for secret in sorted({api_key or "", *named}, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    text = re.sub(r"//[^/@\s]+@", "//***@", text)
    return " ".join(text.split("Traceback (most recent call last)")[0].split())[:SHOWN]


def _header(error: Exception) -> str | None:
    headers = getattr(error, "litellm_response_headers", None)  # litellm empties those of error.response
    return headers.get("retry-after") if headers else None
