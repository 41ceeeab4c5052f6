"""Dialogues of a file as a doctor learns them.

.venv/bin/python -m training.cold_start consultation --base MODEL --dialogues my/consultations/dialogues.jsonl --out my/sft
"""

import re
from pathlib import Path
from reprlib import repr as shortly
from typing import Any

from common.jsonl import read_jsonl
from consultation_agent.protocol import Conclusion, Question, read_reply
from episodes.episode import AgentError, Conversation, Message
from episodes.kept import conversation_of
from episodes.prompts import Prompts

QUESTION_MARKS = re.compile(r"[?？]+")
PAGE = "docs/consultation.md"


def framed_dialogues(path: Path, prompts: Prompts, most_turns: int) -> list[Conversation]:
    """Return dialogues of `conditions.intake.consultations` as episodes of `most_turns`, or of as
    many as they need. Only diagnoses and single questions are learned. Kept episodes are framed
    already.
    Raises AgentError: the file has no such dialogues, or nothing to learn. Raises FileError.
    """
    conversations = []
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        if "agent" in row:
            conversations.append(conversation_of(row, "consultation", where))
        else:
            conversations.append(_framed(_messages(row, where), prompts, most_turns))
    if not any(any(conversation.learn) for conversation in conversations):
        raise AgentError(
            f"{path} has nothing to learn: no diagnosis, "
            "and no reply that asks exactly one question"
        )
    return conversations


def _messages(row: dict[str, Any], where: str) -> list[Message]:
    said = row.get("messages")
    turns = said if isinstance(said, list) and all(isinstance(one, dict) for one in said) else []
    in_turn = [one.get("role") for one in turns] == ["user", "assistant"] * (len(turns) // 2)
    if not (turns and in_turn and all(isinstance(one.get("content"), str) for one in turns)):
        raise AgentError(
            f"{where}: expected messages of user and assistant "
            f"in turn, got {shortly(row)}; see {PAGE}"
        )
    return turns


def _framed(said: list[Message], prompts: Prompts, most_turns: int) -> Conversation:
    replies = [str(message["content"]) for message in said[1::2]]
    ended = isinstance(read_reply(replies[-1]), Conclusion)
    turns = max(most_turns, len(replies) if ended else len(replies) + 1)
    messages = prompts.opening(str(said[0]["content"]), turns)
    learn = []
    for turn, (heard, reply) in enumerate(zip(said[::2], replies, strict=True), 1):
        if turn > 1:
            words = prompts.said(str(heard["content"]), turn, turns)
            messages.append({"role": "user", "content": words})
        messages.append({"role": "assistant", "content": reply})
        read = read_reply(reply)
        asks_once = isinstance(read, Question) and len(QUESTION_MARKS.findall(read.text)) == 1
        learn.append(asks_once or isinstance(read, Conclusion))
    return Conversation(messages, learn)
