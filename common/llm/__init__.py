"""The one way to ask a language model: any provider that litellm knows, and any endpoint that speaks
OpenAI's protocol.

    from common.llm import client_from_settings
    client = client_from_settings(load_settings(), cache=Path("outputs/llm_cache.sqlite"))
    answer = await client.ask([{"role": "user", "content": "..."}], Verdict)    # a Verdict, or LLMError

`client` asks for answers of a schema, `endpoint` carries one request (`ChatModel` asks again for
whole replies), `completions` asks one of many addresses for a text, `retry` says when a request is
made again, `errors` what went wrong. Importing this imports nothing heavy.
"""

from common.llm.client import (
    Answer,
    LLMClient,
    Message,
    Usage,
    client_from_settings,
    open_cache,
    parse_reply,
    reveal,
)
from common.llm.errors import LLMError

__all__ = [
    "Answer",
    "LLMClient",
    "LLMError",
    "Message",
    "Usage",
    "client_from_settings",
    "open_cache",
    "parse_reply",
    "reveal",
]
