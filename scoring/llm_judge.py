"""The LLM judge: reads one agent's material and answer in that agent's words, and gives sub-scores.

    await LLMJudge(WORDS, "openai/some-model", base_url="https://...", api_key="...", timeout=30).judge(case)

Temperature 0, a strict JSON schema where the endpoint takes one. The client is common/llm.py's.
"""

from __future__ import annotations

from common.llm import LLMClient
from common.llm import Usage as Spent
from common.llm_endpoint import MOST_CONNECTIONS
from scoring import remote
from scoring.case import Case, Verdict
from scoring.judge_prompt import JudgeWords, build_messages
from scoring.rubric import weighted_sum

MAX_TOKENS = 400


class LLMJudge(remote.RemoteJudge):
    """An LLM behind litellm's name of it."""

    name = "llm"

    def __init__(
        self, words: JudgeWords, model: str, base_url: str | None, api_key: str | None, timeout: float
    ) -> None:
        """`timeout` is the budget in seconds for one case, retries included."""
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

    async def _ask(self, case: Case, spent: Spent) -> Verdict:
        messages = build_messages(case, self.words)
        answer = await self.client.ask(messages, self.words.reply, max_tokens=MAX_TOKENS, spent=spent)
        parts = answer.value.model_dump()
        return Verdict(min(1.0, weighted_sum(parts, self.words.weights)), parts)
