"""What an endpoint's reply says, in the forms in which OpenAI-compatible servers write it."""

import json
import re
from contextlib import suppress
from typing import Any

# How a reply ended, where neither the model ended it nor a limit that is called "length": the
# provider took it back, or the server broke it off. Servers have many words for each.
FILTERED = "content_filter"
BROKEN = "error"
LENGTH = "length"
ENDINGS = {
    LENGTH: re.compile(r"length|max_?(?:\w+_)?tokens|token_limit|context_window", re.IGNORECASE),
    FILTERED: re.compile(r"filter|safety|sensitive|prohibited|blocklist|recitation", re.IGNORECASE),
    BROKEN: re.compile(r"error|abort|cancel|insufficient_system_resource", re.IGNORECASE),
}
# The status with which other endpoints refuse a request that they would filter
FILTERED_STATUS = 400

# Comments before the JSON of a reply, with which a server keeps the connection open
COMMENTS = re.compile(r"\A(?:\s*:[^\r\n]*)+")
DONE = "[DONE]"
# A stream of server-sent events begins with one of their fields, as no JSON does
STREAM = re.compile(r"\A(?:data|event|id|retry)(?:[:\r\n]|\Z)")
LINE_END = re.compile(r"\r\n|\n|\r")
# The texts of a message, which a stream sends in pieces
PIECES = ("content", "reasoning_content", "reasoning", "refusal")
THOUGHTS = ("thinking", "reasoning")  # kinds of a message's parts that hold no answer


def decoded(body: bytes, declared: str | None) -> str:
    """Return a body as text. JSON is Unicode, whatever charset a gateway declares for it."""
    for encoding in (json.detect_encoding(body), declared or "utf-8"):
        with suppress(UnicodeDecodeError, LookupError):
            return body.decode(encoding)
    return body.decode("utf-8", "replace")


def value_in(text: str) -> Any:
    """Return the JSON value of a body, or the completion that its events add up to.
    Raises ValueError or RecursionError: it is missing, or the stream broke off.
    """
    whole = COMMENTS.sub("", text).strip()
    if not STREAM.match(whole):
        whole = whole.removesuffix(DONE).rstrip().removesuffix("data:")
        return json.loads(whole, strict=False)  # some servers write a line break as it is
    values: list[Any] = []
    ended = False
    name = ""  # of the event
    held = ""  # a value may stand on several lines, with or without an empty one behind it
    for line in LINE_END.split(whole):
        field, _, data = line.partition(":")
        if field == "event":
            name = data.strip()
        if field != "data" or not data.strip():
            continue
        if data.strip() == DONE:
            ended = True
            continue
        held += f"{data.strip()}\n"
        with suppress(ValueError):
            value = json.loads(held, strict=False)
            is_bare = name == "error" and not error_in(value)
            values.append({"error": value} if is_bare else value)
            held = ""
    if held:
        raise ValueError("an event is no JSON")
    try:
        return _joined(values, ended)
    except (AttributeError, TypeError, LookupError) as error:
        raise ValueError(f"no events of a completion: {error}") from error


def _joined(events: list[Any], ended: bool) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: list[dict[str, Any]] = []
    whole: dict[str, Any] = {}
    finish = None
    answered = False
    for event in events:
        if error_in(event):
            return event
        whole |= {name: value for name, value in event.items() if value is not None}
        for choice in event.get("choices") or []:
            answered = True
            delta = choice.get("delta") or {}
            if not delta and choice.get("message"):
                delta = choice["message"]
                # MiniMax sends the whole once more behind its pieces
                if text_of(delta.get("content")).startswith(text_of(message["content"])):
                    message |= dict.fromkeys(filter(delta.get, PIECES))
                    calls = [] if delta.get("tool_calls") else calls
            finish = choice.get("finish_reason") or finish
            for name in PIECES:
                if delta.get(name):
                    message[name] = _added(message.get(name), delta[name])
            for call in delta.get("tool_calls") or []:
                _add_call(_call_of(call, calls), call)
    if not answered:
        raise ValueError("no event has a choice")  # a policy that says nothing sends an empty one
    if finish is None and not ended:
        raise ValueError("the stream broke off")
    kept: list[dict[str, Any]] = []
    for call in calls:
        if not kept or not _repeats(call, kept[-1]):
            kept.append(call)
    for call in kept:
        call.pop("index", None)
    if kept:
        message["tool_calls"] = kept
    return {**whole, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _added(before: Any, piece: Any) -> Any:
    if type(before) is type(piece):
        return before + piece
    return piece if before is None else text_of(before) + text_of(piece)


def _call_of(piece: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the call that a piece belongs to, which is a new one if it belongs to none of them."""
    index, own = piece.get("index"), piece.get("id")
    same = [call for call in calls if index in (None, call.get("index"))]
    for call in same:
        if own and own == call.get("id"):
            return call
    if same and not _begins(piece, same[-1]):
        return same[-1]
    calls.append({"index": index, "function": {}})
    return calls[-1]


def _begins(piece: dict[str, Any], last: dict[str, Any]) -> bool:
    """Return whether a piece begins another call: servers count no calls, or give all of them the
    index 0. The later pieces of a call have no name, and with some servers ids of their own.
    """
    name = (piece.get("function") or {}).get("name")
    before = last["function"]
    if not name or not before.get("name"):
        return False
    if piece.get("index") is None:
        return True
    if _blank(before.get("arguments")):
        return bool(name != before["name"])
    try:
        json.loads(before["arguments"])
    except TypeError:
        return True  # they are an object, and whole
    except ValueError:
        return False
    return True


def _repeats(call: dict[str, Any], before: dict[str, Any]) -> bool:
    """Return whether a call is a last piece of the one before it, which names that call once more.
    Only the end of the stream tells: the arguments of another call could have followed.
    """
    function = call["function"]
    of_one = call.get("index") is not None and call["index"] == before.get("index")
    same = function.get("name") == before["function"].get("name")
    return of_one and same and _blank(function.get("arguments"))


def _blank(arguments: Any) -> bool:
    return not str(arguments or "").strip()


def _add_call(call: dict[str, Any], piece: dict[str, Any]) -> None:
    function = piece.get("function") or {}
    kept = call["function"]
    call |= {name: value for name, value in piece.items() if value and name != "function"}
    for name, value in function.items():
        if name == "arguments":
            kept[name] = _added(kept.get(name), value)
        else:
            kept[name] = value or kept.get(name)


def completed(reply: Any) -> dict[str, Any] | None:
    """Return a chat completion with a message and OpenAI's word for its end, or None for others."""
    try:
        choice = reply["choices"][0]
        said = choice.get("message") or choice.get("delta") or choice.get("text")
        message = {"role": "assistant", "content": said} if isinstance(said, str) else said
        if not isinstance(message, dict):
            return None
    except (LookupError, TypeError, AttributeError):
        return None
    first = {**choice, "message": message, "finish_reason": ending_of(choice)}
    return {**reply, "choices": [first]}


def ending_of(choice: dict[str, Any]) -> str | None:
    """Return the finish_reason in OpenAI's words, BROKEN if the server could not end the reply."""
    if choice.get("error"):
        return BROKEN
    reason = choice.get("finish_reason")
    if not isinstance(reason, str):
        return None
    for name, words in ENDINGS.items():
        if words.search(reason):
            return name
    return reason


def error_in(reply: Any) -> tuple[int | None, str] | None:
    """Return the status and the words of an error that was sent as a success, or None."""
    error = reply.get("error") if isinstance(reply, dict) else None
    if not error or (isinstance(error, dict) and not any(error.values())):
        return None  # some gateways send {"code": 0, "message": ""} beside every answer
    code = str(error.get("code") if isinstance(error, dict) else "")
    status = int(code) if re.fullmatch(r"[45]\d\d", code) else None
    return status, str(error)


def text_of(content: Any) -> str:
    """Return the text of a message's content, which some endpoints send in parts."""
    parts = content if isinstance(content, list) else [content]
    text = "".join(_text_of_part(part) for part in parts)
    # A stream may cut a character in two. A half that stays alone has no UTF-8
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text_of_part(part: Any) -> str:
    if not isinstance(part, dict):
        return "" if part is None else str(part)
    if "type" not in part and "text" not in part:
        return json.dumps(part, ensure_ascii=False)  # a server that has read the model's JSON
    if "text" not in part or part.get("type") in THOUGHTS:
        return ""
    text = part["text"]
    return str(text.get("value") or "") if isinstance(text, dict) else str(text or "")


def thought_of(message: dict[str, Any]) -> str:
    """Return the thought that stands beside what a message says, or ""."""
    beside = message.get("reasoning_content") or message.get("reasoning")
    if beside:
        return text_of(beside)
    parts = message.get("content")
    held = []
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict) and part.get("type") in THOUGHTS:
            held.append(text_of(part.get("thinking") or [{"text": part.get("text")}]))
    return "".join(held)


def tokens_in(reply: dict[str, Any], name: str) -> int:
    """Return a count of the reply's usage, 0 where the endpoint gives none."""
    try:
        return max(0, int(float(reply["usage"][name])))
    except (LookupError, TypeError, ValueError, OverflowError):
        return 0
