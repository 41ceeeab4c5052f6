"""The LLM judge, which gives sub-scores for an answer in one agent's words, at temperature 0."""

import json
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import regex
from pydantic import BaseModel, ConfigDict, Field, create_model

from common.llm.client import LLMClient, Usage
from common.llm.endpoint import MOST_CONNECTIONS
from scoring import remote
from scoring.case import Case, Verdict

MAX_TOKENS = 2048  # the thought of models that think included

# "<" and what is not seen; the line breaks are those of the JSON itself.
ESCAPED = regex.compile(r"(?!\n)[<\p{Other}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]")
SubScore = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True)
class JudgeWords:
    """What one agent's LLM judge reads."""

    version: str  # raised with every word: scores of two versions are not comparable
    instructions: str  # names the sub-scores, says that the material is data
    weights: Mapping[str, float]  # of the sub-scores; they add up to 1
    material: Callable[[Case], Mapping[str, str | None]]  # what the judge is shown, by name
    closing: str  # the last line of the prompt
    known_case: Case  # an invented question with its right answer, to see that a judge is there

    @cached_property
    def reply(self) -> type[BaseModel]:
        fields: dict[str, Any] = dict.fromkeys(self.weights, (SubScore, ...))
        return create_model("Scores", __config__=ConfigDict(extra="forbid"), **fields)

    def parts(self, case: Case, said: BaseModel) -> dict[str, float]:
        """Return the sub-scores of a reply, each in [0, 1]. Other forms of reply override this."""
        return said.model_dump()


def build_messages(case: Case, words: JudgeWords) -> list[dict[str, str]]:
    """Return the prompt: instructions, then the material as JSON between lines with a random mark.

    "<", invisible characters and line breaks are escaped: no chat token or tag takes effect.
    """
    mark = secrets.token_hex(8)
    material = json.dumps(words.material(case), ensure_ascii=False, indent=1)
    text = ESCAPED.sub(_escape, material)
    user = f"----- 材料开始 {mark} -----\n{text}\n----- 材料结束 {mark} -----\n{words.closing}"
    return [{"role": "system", "content": words.instructions}, {"role": "user", "content": user}]


def _escape(match: regex.Match[str]) -> str:
    return regex.sub("(....)", r"\\u\1", match.group().encode("utf-16-be", "surrogatepass").hex())


class LLMJudge(remote.RemoteJudge):
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
        self.identity = f"{model}, words {words.version}"
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
        said = await self.client.ask(messages, self.words.reply, max_tokens=MAX_TOKENS, spent=spent)
        parts = self.words.parts(case, said)
        score = math.fsum(parts[name] * weight for name, weight in self.words.weights.items())
        return Verdict(min(1.0, score), parts)
