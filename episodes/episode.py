"""What an episode is made of: the task, who plays it, what happened, and what it is worth."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from common.command import Failure, UsageError
from scoring.rubric import Reward

# Stop reasons that a whole last reply leads to
OF_A_REPLY = ("answered", "no_answer", "bad_tool_call", "bad_reply")

Message = dict[str, Any]
Role = Literal["system", "developer", "user", "assistant", "tool"]
ToolSpec = dict[str, Any]


class AgentError(UsageError):
    """Rows, settings or flags that an agent cannot work with."""


class ServiceError(Failure):
    """A service that episodes need (judge, database, partner) does not answer."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One row of an agent's data, checked. question, reference: for people.

    wording: "seen" if a training task has it, "unseen" if none, "" if unknown. max_turns: None for
    the run's. agent: the name, if one policy plays several.
    """

    id: str
    question: str
    reference: str = ""
    task_type: str = "all"
    difficulty: str = "unknown"
    wording: str = ""
    max_turns: int | None = None
    agent: str = ""


class Policy(ABC):
    """The player of an episode: a model behind an endpoint, a person, a script.

    finish_reason: of the last reply; "length": it was cut by its token limit.
    """

    def __init__(self, max_turns: int) -> None:
        self.max_turns = max_turns
        self.turns = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.finish_reason: str | None = None

    @abstractmethod
    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        """Return the assistant's next message. With the last one allowed, tools are forbidden.
        Raises PolicyStop: budget or length is used up. Raises EpisodeError: the machine failed.
        """


@dataclass
class Episode:
    """What happened. messages: the transcript as OpenAI dicts.

    events: what the environment did, of the agent's own type. turns: the policy's replies. Tokens
    are sums, 0 where the endpoint does not count. reply_tokens: of each. tools: those offered.
    """

    messages: list[Message] = field(default_factory=list)
    answer: str | None = None
    stop_reason: str = ""
    events: list[Any] = field(default_factory=list)
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reply_tokens: list[int] = field(default_factory=list)
    tools: list[ToolSpec] = field(default_factory=list)

    def end_as_cut(self, policy: Policy) -> None:
        """Take the answer back if the last reply was cut by its token limit."""
        if policy.finish_reason == "length" and self.stop_reason in OF_A_REPLY:
            self.answer = None
            self.stop_reason = "length"


@dataclass(frozen=True)
class Conversation:
    """Messages to learn from, whether each of the assistant's turns is learned, and the tools.

    raw: the text is the contents without a chat template, as for completions.
    """

    messages: list[Message]
    learn: list[bool]
    tools: Sequence[ToolSpec] = ()
    raw: bool = False


@dataclass(frozen=True)
class Scored:
    """An episode with its reward. detail: what failed. seconds: with scoring."""

    task: Task
    episode: Episode
    reward: Reward
    detail: str
    seconds: float
