"""Let an LLM rephrase a share of the questions. Their meaning, gold and split stay.

A rewording is taken if it keeps every name and search word letter by letter, brings in no other
name of the database, is one line of ordinary length, repeats no question and is not nearly one of
another split. LLM_CACHE keeps replies, so that an interrupted command goes on without asking twice.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from common.llm.client import LLMClient, client_from_settings
from common.settings import load_settings
from common.terminal import gathered
from recipes.questions.entities import Mentions
from recipes.questions.generate import Dataset
from sql_agent.curation.near_duplicates import NearDuplicates
from sql_agent.intake.question_files import Row, nested
from tools.sql.result import neutralise

# Length of a rewording, in characters
SHORTEST = 6
LONGEST = 80
TEMPERATURE = 0.8
INSTRUCTIONS = """把用户的问题换一种自然的中文问法,像普通患者在聊天里那样问。要求:
1. 意思完全不变,问的内容不多也不少;
2. 这些词必须一字不差地保留:{kept};
3. 不要加入别的药名、病名或数字,不要回答问题;
4. 只写一个问句,不超过 40 个字。"""


class Rewording(BaseModel, extra="forbid"):
    """The answer of the LLM."""

    question: str = Field(description="换了说法的问题")


def paraphrase(dataset: Dataset, share: float) -> str:
    """Reword a share of the questions, and return a line for the operator.

    Raises LLMError: the client cannot be used, or a row got no answer after all attempts.
    """
    rows = [row for part in dataset.splits.values() for row in part]
    # Chosen by a hash of the id, so that the choice depends on nothing else.
    chosen = [
        row
        for row in rows
        if int(hashlib.sha256(row["id"].encode()).hexdigest()[:8], 16) < share * 2**32
    ]
    settings = load_settings()
    client = client_from_settings(settings, cache=settings.llm_cache)
    taken = reword(dataset.splits, ask_all(chosen, client), dataset.mentions)
    refused = len(chosen) - taken
    return (
        f"reworded: {taken} of {len(chosen)} questions; "
        f"{refused} rewordings were refused. {client.usage}"
    )


def held_words(row: Row) -> list[str]:
    """Return the names and search words that stand in the question, longest first."""
    return sorted(
        (word for word in nested(row, "entities") if word in row["question"]), key=len, reverse=True
    )


def ask_all(rows: Sequence[Row], client: LLMClient) -> dict[str, str]:
    """Return the rewordings by row id. Raises LLMError."""

    async def ask(row: Row) -> str:
        instructions = INSTRUCTIONS.format(kept="、".join(held_words(row)))
        messages = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": row["question"]},
        ]
        return (await client.ask(messages, Rewording, temperature=TEMPERATURE)).question

    replies = asyncio.run(gathered([ask(row) for row in rows], "paraphrase", "questions"))
    return {row["id"]: reply for row, reply in zip(rows, replies, strict=True)}


def reword(splits: Mapping[str, list[Row]], replies: Mapping[str, str], mentions: Mentions) -> int:
    """Put the rewordings that can be taken into the rows, and return their number."""
    questions = {row["question"] for rows in splits.values() for row in rows}
    nears = {split: NearDuplicates() for split in splits}
    taken = 0
    for split, rows in splits.items():
        for row in rows:
            nears[split].add(row["id"], row["question"])
    for split, rows in splits.items():
        others = [near for other, near in nears.items() if other != split]
        for row in rows:
            text = replies.get(row["id"], "").strip()
            if (
                text in questions
                or not is_faithful(row, text, mentions)
                or any(near.nearest(text) for near in others)
            ):
                continue
            questions.add(text)
            nears[split].add(f"{row['id']} reworded", text)
            row["question"] = text
            row["difficulty"] = "hard" if row["difficulty"] == "hard" else "mid"
            row["wording"] = ""  # it is unknown whether a training row has this wording
            taken += 1
    return taken


def is_faithful(row: Row, text: str, mentions: Mentions) -> bool:
    """Return whether a rewording seems to ask about the same things."""
    plain = SHORTEST <= len(text) <= LONGEST and "\n" not in text and neutralise(text) == text
    same_words = all(word in text for word in held_words(row))
    return plain and same_words and set(mentions.find(text)) <= set(mentions.find(row["question"]))
