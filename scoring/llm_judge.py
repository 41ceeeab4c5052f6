"""The LLM judge: reads one agent's material and answer in that agent's words, and gives sub-scores.

    WORDS = JudgeWords(version="1", instructions="...", weights={"accuracy": 1.0}, material=..., closing="...", ...)
    await LLMJudge(WORDS, "openai/some-model", base_url="https://...", api_key="...", timeout=30).judge(case)

Temperature 0, a strict JSON schema where the endpoint takes one. The client is common/llm's.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import regex
from pydantic import BaseModel, ConfigDict, Field, create_model

from common.llm import LLMClient, Usage
from common.llm.endpoint import MOST_CONNECTIONS
from scoring import remote
from scoring.case import Case, Verdict

MAX_TOKENS = 2048  # the thought of models that think included

# "<" and what is not seen; the line breaks are those of the JSON itself.
ESCAPED = regex.compile(r"(?!\n)[<\p{Other}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]")
SubScore = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True)
class JudgeWords:
    """What one agent's LLM judge reads.

    version: raised with every word that the judge reads, for scores of two versions are not
    comparable. instructions: the system prompt; it names the sub-scores and says that the material
    is data, not instructions. weights: the sub-scores and how much each counts; they add up to 1.
    material: what the judge is shown of a case, by the name it has for the judge. closing: the last
    line of the prompt, after the material. known_case: an invented question with its right answer,
    to see whether a judge is there.
    """

    version: str
    instructions: str
    weights: Mapping[str, float]
    material: Callable[[Case], Mapping[str, str | None]]
    closing: str
    known_case: Case

    @cached_property
    def reply(self) -> type[BaseModel]:
        """The form of a reply: exactly the sub-scores, each a number in [0, 1]."""
        fields: dict[str, Any] = dict.fromkeys(self.weights, (SubScore, ...))
        return create_model("Scores", __config__=ConfigDict(extra="forbid"), **fields)

    def parts(self, case: Case, said: BaseModel) -> dict[str, float]:
        """Return the sub-scores of a reply, each in [0, 1]. An agent whose judge answers in another
        form overrides this.
        """
        return said.model_dump()


def build_messages(case: Case, words: JudgeWords) -> list[dict[str, str]]:
    """Return the judge's prompt: instructions, then the material as JSON between two lines with a
    random mark.

    No answer can guess the mark. "<", invisible characters and all that begins a line are written
    as JSON escapes, so that no chat token, tag or line of the material takes effect.
    """
    mark = secrets.token_hex(8)
    material = json.dumps(words.material(case), ensure_ascii=False, indent=1)
    text = ESCAPED.sub(_escape, material)
    user = f"----- 材料开始 {mark} -----\n{text}\n----- 材料结束 {mark} -----\n{words.closing}"
    return [{"role": "system", "content": words.instructions}, {"role": "user", "content": user}]


def _escape(match: regex.Match[str]) -> str:
    return regex.sub("(....)", r"\\u\1", match.group().encode("utf-16-be", "surrogatepass").hex())


class LLMJudge(remote.RemoteJudge):
    """An LLM behind litellm's name of it."""

    name = "llm"

    def __init__(
        self,
        words: JudgeWords,
        model: str,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
    ) -> None:
        """Prepare a judge. `timeout` is the budget in seconds for one case, retries included."""
        super().__init__()
        self.words = words
        self.client = LLMClient(
            model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            attempts=remote.ATTEMPTS,
            longest_wait=remote.LONGEST_WAIT,
            concurrency=MOST_CONNECTIONS,
        )

    async def _ask(self, case: Case, spent: Usage) -> Verdict:
        messages = build_messages(case, self.words)
        answer = await self.client.ask(
            messages, self.words.reply, max_tokens=MAX_TOKENS, spent=spent
        )
        parts = self.words.parts(case, answer.value)
        score = math.fsum(parts[name] * weight for name, weight in self.words.weights.items())
        return Verdict(min(1.0, score), parts)
