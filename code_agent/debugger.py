"""The answers to `debug`: a traceback is explained by debugger.toml or by a model.

Neither sees the task's answer, so `debug` cannot give it away.
"""

import re
from typing import Any

from pydantic import BaseModel

from common.llm.client import LLMClient
from common.llm.errors import LLMError
from common.toml import table_beside
from episodes.outcomes import EpisodeError

TABLE = table_beside(__file__)
WORDS: dict[str, str] = TABLE["words"]
EXPLAINED = [(re.compile(row["pattern"], re.IGNORECASE), row["text"]) for row in TABLE["explained"]]
LINE = re.compile(r'File "(<[^"]*>)", line (\d{1,6})')
LONGEST = 8000  # characters of a program or an error that are read


class Explanation(BaseModel):
    """The form of a model's reply."""

    explanation: str


class Debugger:
    """Explains errors, by a model if its litellm name is given."""

    def __init__(
        self,
        model: str | None = None,
        *,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        **where: Any,
    ) -> None:
        """Prepare a debugger. max_tokens: of one explanation. where: as `LLMClient` takes it."""
        self.client = LLMClient(model, **where) if model else None
        self.limits: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}

    async def debug(self, code: str, error: str) -> str:
        """Return an explanation. Raises EpisodeError if the model failed."""
        if not self.client:
            return explain(code, error)
        asked = WORDS["user"].format(code=code[:LONGEST], error=error[-LONGEST:])
        system = {"role": "system", "content": WORDS["system"]}
        messages = [system, {"role": "user", "content": asked}]
        try:
            return (await self.client.ask(messages, Explanation, **self.limits)).explanation
        except LLMError as failed:
            raise EpisodeError("debugger_failed", str(failed)) from None


def explain(code: str, error: str) -> str:
    """Explain the last line of an error and name the program's line."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if not lines:
        return WORDS["no_error"]
    said = WORDS["unknown"]
    for pattern, text in EXPLAINED:
        if match := pattern.search(lines[-1][:LONGEST]):
            said = text.format(*match.groups())
            break
    named = LINE.findall(error)
    # The first file named is this program. Functions of earlier programs stand in other files
    own = [int(number) for name, number in named if name == named[0][0]]
    program = code.splitlines()
    number = own[-1] if own else 0
    if 0 < number <= len(program):
        said += f"\n{WORDS['line'].format(number, program[number - 1].strip())}"
    return said
