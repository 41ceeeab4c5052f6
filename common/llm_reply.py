"""The text of an LLM's reply and the schema it must fit. common/llm.py is the user."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Message = dict[str, str]
Schema = TypeVar("Schema", bound=BaseModel)

SHOWN = 120  # characters of a malformed reply in a message


def parse_reply(text: str, schema: type[Schema]) -> Schema:
    """The reply as a `schema`; it may stand in a Markdown code block.

    Raises:
        ValueError: not JSON, or JSON that does not fit.
    """
    text = text.strip()
    if text.startswith("```"):
        text = text.removeprefix("```").removeprefix("json").removesuffix("```")
    try:
        return schema.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the reply"
        raise ValueError(f"expected {schema.__name__} as JSON; {where}: {first['msg']}; got {text[:SHOWN]!r}") from None


def with_schema(messages: list[Message], schema: type[BaseModel]) -> list[Message]:
    """The messages with the schema written out, for endpoints that take none."""
    text = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    return [*messages, {"role": "user", "content": f"只输出一个符合下面 JSON Schema 的 JSON 对象：\n{text}"}]
