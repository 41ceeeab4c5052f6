"""What an episode is made of: the task, who plays it, what happened, and what it is worth.

Agents, loops and everything that stores episodes share these. Importing this imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.command import Failure, UsageError
from scoring.rubric import Reward

Message = dict[str, Any]
ToolSpec = dict[str, Any]


class AgentError(UsageError):
    """Rows, settings or flags that an agent cannot work with. The message is one line that says
    what to do.
    """


class ServiceError(Failure):
    """A service that an agent's episodes need (judge, database, partner) does not answer. The
    message is one line that says what was seen.
    """


@dataclass(frozen=True, kw_only=True)
class Task:
    """One row of an agent's data, checked; an agent's own subclass adds what its environment needs.

    question, reference: what a person reads as the task and its gold answer. wording: "seen" if a
    training task has the same wording, "unseen" if none has, "" if unknown. max_turns: its budget,
    None for the run's. agent: the agent's name, if one policy plays several.
    """

    id: str
    question: str
    reference: str = ""
    task_type: str = "all"
    difficulty: str = "unknown"
    wording: str = ""
    max_turns: int | None = None
    agent: str = ""


@dataclass
class Episode:
    """What happened. messages: the transcript as OpenAI dicts. stop_reason: one of
    `episodes.outcomes.STOP_REASONS`.

    events: what the environment did, of the agent's own type. turns: replies of the policy; tokens
    are summed over them as the endpoint counts them, 0 where it does not; reply_tokens: of each
    reply, where the loop notes them. tools: those that the policy was offered, where the loop notes
    them. replies: the policy's own, where the transcript has replies that it did not give.
    """

    messages: list[Message] = field(default_factory=list)
    answer: str | None = None
    stop_reason: str = ""
    events: list[Any] = field(default_factory=list)
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reply_tokens: list[int] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)
    tools: list[ToolSpec] = field(default_factory=list)


class Policy(Protocol):
    """The player of an episode: a model behind an endpoint, a person, a script.

    Counts its replies and keeps to its budget.
    """

    max_turns: int
    turns: int
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str | None  # of the last reply; "length": it was cut by its token limit

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        """Return the assistant's next message.

        With the last message that the budget allows, tools are forbidden, so that the policy
        answers in words.

        Raises:
            PolicyStop: the policy cannot go on (budget spent, prompt too long); names a stop
                reason.
            EpisodeError: the machine failed.
        """
        ...


@dataclass(frozen=True)
class Conversation:
    """Supervised data: messages, for each of the assistant's turns whether it is learned, and the
    tools described.

    raw: the text is the contents one after the other, without a chat template, as for a model that
    is asked for completions.
    """

    messages: list[Message]
    learn: list[bool]
    tools: Sequence[ToolSpec] = ()
    raw: bool = False


@dataclass(frozen=True)
class Scored:
    """An episode with its reward. detail: what failed, if it has no score. seconds: scoring
    included.
    """

    task: Task
    episode: Episode
    reward: Reward
    detail: str
    seconds: float
