"""The LLM judge: sees question, reference, evidence, the rows the tool returned and the answer; gives four sub-scores.

    await LLMJudge("openai/some-model", base_url="https://...", api_key="...", timeout=30).judge(case)

litellm names the provider, its endpoint, its key and its prices. Where the provider speaks OpenAI's protocol and the
endpoint is known, the request is sent directly, because `litellm.acompletion` costs 3.5 ms of processor time a call:
more than there is at 32 calls in flight and 100 ms of latency (`python -m bench.scoring`). Every other provider goes
through `acompletion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from common.llm import load_litellm
from scoring.case import Case
from scoring.judge_prompt import FORMATS, WEIGHTS, build_messages, parse_scores
from scoring.remote import MalformedReply, RemoteJudge, Scored, strict_json
from scoring.rubric import weighted_sum

MAX_TOKENS = 400
SHORTEST_SECRET = 6  # shorter keys are words like "none", which must not be blotted out
REFUSED_FORMAT = {400, 404, 415, 422, 501}  # how endpoints refuse a response_format they do not know


@dataclass(frozen=True)
class Provider:
    """Where a model is called, as litellm resolves its name, and its price in USD a token; None where unknown."""

    name: str
    model: str
    base_url: str | None
    api_key: str | None
    prices: tuple[float, float] | None

    @property
    def speaks_openai(self) -> bool:
        """Whether a plain POST to `{base_url}/chat/completions` is what the provider expects."""
        return bool(self.base_url) and (
            self.name == "openai" or self.name in load_litellm().openai_compatible_providers
        )


class LLMJudge(RemoteJudge):
    """Temperature 0, a strict JSON schema where the endpoint takes one, and a prompt with a version."""

    name = "llm"

    def __init__(self, model: str, base_url: str | None, api_key: str | None, timeout: float) -> None:
        """`model` is litellm's name of it; `timeout` is the budget in seconds for one case, retries included."""
        super().__init__(timeout)
        self.model = model
        self.base_url = base_url
        self.api_key = api_key
        self._format = 0  # the strictest of FORMATS that this endpoint took

    @cached_property
    def provider(self) -> Provider:
        """Raises whatever litellm raises for a name it does not know."""
        litellm = load_litellm()
        model, name, key, base = litellm.get_llm_provider(self.model, api_base=self.base_url, api_key=self.api_key)
        price = litellm.model_cost.get(self.model) or litellm.model_cost.get(model) or {}
        read, written = price.get("input_cost_per_token"), price.get("output_cost_per_token")
        prices = None if read is None or written is None else (float(read), float(written))
        return Provider(name, model, self.base_url or base, self.api_key or key, prices)

    def _secrets(self) -> list[str]:
        found: Provider | None = self.__dict__.get("provider")  # a name litellm does not know has none
        return [key for key in (self.api_key, found and found.api_key) if key and len(key) >= SHORTEST_SECRET]

    def _prepare(self) -> None:
        load_litellm()

    async def _ask(self, case: Case) -> Scored:
        messages = build_messages(case)
        for number in range(self._format, len(FORMATS)):
            try:
                text, cost = await self._complete(messages, FORMATS[number])
            except Exception as error:
                refused = getattr(error, "status_code", None) in REFUSED_FORMAT
                if not refused or number == len(FORMATS) - 1:
                    raise
                continue
            self._format = number
            parts = parse_scores(text)
            return Scored(min(1.0, weighted_sum(parts, WEIGHTS)), parts, cost)
        raise AssertionError("the last format either answers or raises")

    async def _complete(
        self, messages: list[dict[str, str]], response_format: dict[str, Any] | None
    ) -> tuple[str, float | None]:
        """The text of one completion and its price in USD, None where unknown."""
        body: dict[str, Any] = {"messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS}
        if response_format is not None:
            body["response_format"] = response_format
        reply = await (self._direct(body) if self.provider.speaks_openai else self._through_litellm(body))
        try:
            return reply["choices"][0]["message"]["content"] or "", _price(reply, self.provider)
        except (LookupError, TypeError):
            raise MalformedReply(f"expected a completion, got {str(reply)[:200]}") from None

    async def _direct(self, body: dict[str, Any]) -> Any:
        provider = self.provider
        url = f"{(provider.base_url or '').rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {provider.api_key}"} if provider.api_key else None
        return strict_json(await self._post(url, {"model": provider.model, **body}, headers))

    async def _through_litellm(self, body: dict[str, Any]) -> Any:
        reply = await load_litellm().acompletion(
            model=self.model,
            drop_params=True,
            api_base=self.base_url,
            api_key=self.api_key,
            timeout=self.timeout,
            num_retries=0,
            max_retries=0,
            **body,
        )
        return reply.model_dump()


def _price(reply: dict[str, Any], provider: Provider) -> float | None:
    if provider.prices is None:
        return None
    used = reply.get("usage") or {}
    read, written = used.get("prompt_tokens"), used.get("completion_tokens")
    return None if read is None or written is None else read * provider.prices[0] + written * provider.prices[1]
