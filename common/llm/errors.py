"""What can go wrong when a model is asked: one line without secrets."""

import math
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from common.command import Failure, UsageError

Cause = Literal["timeout", "connection", "refused", "status", "malformed", "setup"]

NOT_IMPLEMENTED = 501
SHOWN = 300  # characters of an endpoint's words in a message
SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
# Shorter values of such variables are words like "true", which must stay readable
SHORTEST_SECRET = 6
# litellm gives these to errors of very different providers; only their texts differ.
NO_CONNECTION = re.compile(r"Connection error|Cannot connect to host")
# Of an account without money, which no wait fills. Others say "quota" of a limit of a minute, too
EMPTY_ACCOUNT = re.compile(
    r"insufficient[ _](?:account )?balance|balance is (?:insufficient|not enough|too low)|"
    r"exceeded_current_quota_error|欠费|余额不足|\\u6b20\\u8d39|\\u4f59\\u989d",
    re.IGNORECASE,
)
LITELLMS_NAMES = re.compile(r"^(?:litellm\.)?(?:\w+Error: )+")


class LLMError(Failure):
    """A request got no usable answer. The message holds no secret.

    `cause`: timeout (the budget is over), connection, refused (asking again does not help), status
    (another HTTP failure that stayed), malformed (replies that do not fit), setup (no model, no
    cache). `status`: the HTTP status. `retry_after`: the seconds that the endpoint asked to wait.
    `words`: all that the endpoint said, of which the message has the beginning.
    """

    def __init__(
        self,
        message: str,
        cause: Cause,
        status: int | None = None,
        retry_after: float | None = None,
        words: str = "",
    ) -> None:
        super().__init__(message)
        self.words = words or message
        self.cause: Cause = cause
        self.status = status
        self.retry_after = retry_after
        if cause == "setup":
            self.exit_code = UsageError.exit_code

    @property
    def may_pass(self) -> bool:
        """Whether asking again can help."""
        return self.cause not in ("refused", "setup")


def of_status(
    who: str, status: int, words: str, headers: Mapping[str, str] | None = None, hint: str = ""
) -> LLMError:
    """Return the error for an unsuccessful reply. Its Retry-After is among the `headers`."""
    passing = status in (408, 409, 425, 429) or (status >= 500 and status != NOT_IMPLEMENTED)
    if status == 429 and EMPTY_ACCOUNT.search(words):
        passing = False
    wait = wait_in(headers or {}) if passing else None
    asked = f" (it asks to wait {wait:.0f} s)" if wait else ""
    message = f"{who}: HTTP {status}: {words[:SHOWN]}{hint}{asked}"
    return LLMError(message, "status" if passing else "refused", status, wait, words)


def explain(error: Exception, litellm: Any, model: str, api_key: str | None) -> LLMError:
    """Return litellm's exception, of any provider, as an LLMError."""
    status = getattr(error, "status_code", None)
    words = LITELLMS_NAMES.sub("", one_line(str(error), api_key))
    text = words[:SHOWN]
    if isinstance(error, litellm.Timeout):
        return LLMError(f"{model}: no reply in time", "timeout")
    if isinstance(error, litellm.APIConnectionError) or NO_CONNECTION.search(words):
        return LLMError(f"{model}: no connection ({text})", "connection")
    if "Missing credentials" in words:
        own = ", ".join(litellm.validate_environment(model)["missing_keys"]) or "the provider's"
        return LLMError(f"{model}: no API key; set {own}, or for a judge TEACHER_API_KEY", "setup")
    # litellm empties the headers of error.response
    headers = getattr(error, "litellm_response_headers", None) or {}
    if status:
        return of_status(model, status, words, headers)
    return LLMError(f"{model}: {text}", "status", words=words)


def clean(text: str, api_key: str | None = None) -> str:
    """Return the beginning of an endpoint's words in one line without secrets."""
    return one_line(text, api_key)[:SHOWN]


def one_line(text: str, api_key: str | None) -> str:
    """Return an endpoint's words in one line, without the keys that some endpoints repeat."""
    named = (value for name, value in os.environ.items() if name.upper().endswith(SECRET_NAMES))
    for secret in sorted({api_key or "", *named}, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    text = re.sub(r"//[^/\s]+@", "//***@", text)
    return " ".join(text.split("Traceback (most recent call last)")[0].split())


def wait_in(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a reply asks to wait (RFC 9110, section 10.2.3), or None."""
    after = headers.get("retry-after", "")
    wanted: list[float] = []
    with suppress(ValueError):  # Azure's and OpenAI's own
        wanted.append(float(headers.get("retry-after-ms", "")) / 1000)
    with suppress(ValueError):
        wanted.append(float(after))
    with suppress(ValueError, OverflowError):
        wanted.append(parsedate_to_datetime(after).timestamp() - time.time())
    return next((max(0.0, seconds) for seconds in wanted if math.isfinite(seconds)), None)
