"""One episode as a game: replies of a policy in, observations out, until it ends.

game = Game(tasks, tasks.task(0), context, ending="submit")
step = await game.answer('{"action": "validate_code", "params": {"code": "print(6 * 7)"}}')
"""

from dataclasses import dataclass, replace

from code_agent.actions import SAID, EpisodeContext, Observation, as_text, perform, refusal
from code_agent.judging import Handed
from code_agent.protocol import ENDINGS, Action, Event, Malformed, read_reply
from code_agent.task import CodeTask
from code_agent.tasks.base import TaskSet

# Characters of an observation that the policy reads. The middle of a longer one is left out
LONGEST = 8000


@dataclass(frozen=True)
class Step:
    observation: Observation
    done: bool = False


class Game:
    """One episode. handed: the submitted answer, or None. worth: its value, hidden from the policy."""

    def __init__(
        self,
        tasks: TaskSet,
        task: CodeTask,
        context: EpisodeContext,
        ending: str = "submit",
        longest: int = LONGEST,
    ) -> None:
        if ending not in ENDINGS:
            raise ValueError(f"ending {ending!r}: expected {' or '.join(ENDINGS)}")
        self.tasks = tasks
        self.task = task
        self.context = context
        self.ending = ending
        self.permitted = permitted(tasks, ending)
        self.longest = longest
        self.events: list[Event] = []
        self.handed: Handed | None = None
        self.worth = 0.0

    async def answer(self, reply: str | Action) -> Step:
        """Take one reply. Raises EpisodeError if the machine failed."""
        action = read_reply(reply) if isinstance(reply, str) else reply
        if self.handed:
            return Step(refusal("over"), True)
        if isinstance(action, Malformed):
            observation = refusal(action.problem, action.detail)
            self.events.append(Event("", kind="error", problem=action.problem))
            return Step(observation)
        if action.name == "submit" and "submit" in self.permitted:
            return await self._submit(action)
        observation = await perform(action, self.context, self.permitted)
        event = Event(
            action.name,
            action.params,
            kind=observation["type"],
            status=observation.get("status", ""),
            printed=observation.pop("printed", ""),
            problem=observation.get("problem", ""),
        )
        self.events.append(event)
        done = self.ending == "oracle" and await self._oracle_ends(observation)
        said = observation["env_message"]
        left = len(said) - self.longest
        if left > 0:
            half = self.longest // 2
            said = said[:half] + SAID["cut"].format(left=left) + said[-half:]
        return Step({**observation, "env_message": said}, done)

    async def _submit(self, action: Action) -> Step:
        """Hand in the given answer, or else what the last program printed.

        A program may print nothing in a set that is judged by what the program left behind.
        """
        given = action.params.get("answer")
        answer = as_text(given) if given is not None else self.printed
        if answer is None and self._runs and not self.tasks.answered:
            answer = ""
        if answer is None:
            problem = "nothing_to_hand_in"
            self.events.append(Event("submit", action.params, kind="error", problem=problem))
            return Step(refusal(problem))
        is_program = given is not None and self.context.frame
        self.handed = Handed(answer, answer if is_program else self.program)
        self.worth = await worth(self.tasks, self.task, self.handed, self.context)
        self.events.append(Event("submit", action.params, kind="submitted", worth=self.worth))
        return Step({"type": "submitted", "env_message": SAID["handed_in"]}, True)

    @property
    def _runs(self) -> list[Event]:
        return [event for event in self.events if event.ran and not event.raised]

    @property
    def printed(self) -> str | None:
        """What the last program without an error printed, or None if it printed nothing."""
        last = self._runs[-1].printed if self._runs else ""
        return last if last.strip() else None

    @property
    def program(self) -> str:
        """The last program that ran without error, or ""."""
        return str(self._runs[-1].params["code"]) if self._runs else ""

    async def _oracle_ends(self, observation: Observation) -> bool:
        if observation["type"] != "code_execution" or observation["status"] != "SUCCESS":
            return False
        handed = Handed(self.printed or "", self.program)
        self.worth = await worth(self.tasks, self.task, handed, self.context)
        right = self.worth >= 1  # of predictions it is the share that is right
        observation["env_message"] += "\n" + SAID["right" if right else "not_right"]
        if right:
            self.handed = handed
            self.events[-1] = replace(self.events[-1], worth=self.worth)
        return right


def permitted(tasks: TaskSet, ending: str) -> tuple[str, ...]:
    """Return the actions of a set's tasks, and the one that hands in."""
    return (*tasks.actions, "submit") if ending == "submit" else tasks.actions


async def worth(tasks: TaskSet, task: CodeTask, handed: Handed, context: EpisodeContext) -> float:
    """Return an answer's value, 0 to 1. Raises EpisodeError: it cannot be determined here."""
    if task.gold is not None:
        return tasks.score(task, handed.answer)
    return await tasks.check(task).worth(handed, context)
