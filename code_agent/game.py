"""One episode as a game: replies of a policy in, observations out, until it ends.

game = Game(tasks, tasks.task(0), context, ending="submit")
observation = await game.answer('{"action": "validate_code", "params": {"code": "print(6 * 7)"}}')
"""

from code_agent.actions import SAID, EpisodeContext, Observation, as_text, perform, refusal
from code_agent.judging import Handed
from code_agent.protocol import ENDINGS, Action, Event, Malformed, read_reply
from code_agent.task import CodeTask
from code_agent.tasks.base import TaskSet

# Characters of an observation that the policy reads. The middle of a longer one is left out
LONGEST = 8000


class Game:
    """One episode. handed: what ended it, or None. worth: its value, hidden from the policy."""

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
        self.ran: Handed | None = None  # the last program without an error, and what it printed
        self.handed: Handed | None = None
        self.worth = 0.0

    async def answer(self, reply: str | Action) -> Observation:
        """Take one reply. Raises EpisodeError if the machine failed."""
        if self.handed:
            return refusal("over")
        action = read_reply(reply) if isinstance(reply, str) else reply
        if isinstance(action, Malformed):
            return self._noted(Action(""), refusal(action.problem, action.detail))
        if action.name == "submit" and "submit" in self.permitted:
            return self._noted(action, await self._submit(action))
        observation = await perform(action, self.context, self.permitted)
        if observation["type"] == "code_execution" and observation["status"] == "SUCCESS":
            self.ran = Handed(observation["printed"], action.params["code"])
            if self.ending == "oracle":
                worth = await self._hand_in(self.ran)
                right = self.tasks.succeeds(self.task, worth)
                self.handed = self.ran if right else None
                observation["env_message"] += "\n" + SAID["right" if right else "not_right"]
        return self._noted(action, observation)

    async def _submit(self, action: Action) -> Observation:
        """Hand in the given answer, or else what the last program printed.

        A program may print nothing in a set that is judged by what the program left behind.
        """
        given = action.params.get("answer")
        handed = self.ran
        if given is not None:
            answer = as_text(given)
            program = self.ran.program if self.ran else ""
            handed = Handed(answer, answer if self.context.frame else program)
        elif handed and self.tasks.answered and not handed.answer:
            handed = None
        if handed is None:
            return refusal("nothing_to_hand_in")
        await self._hand_in(handed)
        return {"type": "submitted", "env_message": SAID["handed_in"]}

    async def _hand_in(self, handed: Handed) -> float:
        self.worth = await self.tasks.worth(self.task, handed, self.context)
        self.handed = handed
        return self.worth

    def _noted(self, action: Action, observation: Observation) -> Observation:
        """Note what came of an action. Return what the policy reads of it."""
        event = Event(
            action.name,
            action.params,
            kind=observation["type"],
            status=observation.get("status", ""),
            printed=observation.pop("printed", ""),
            problem=observation.get("problem", ""),
            worth=self.worth if self.handed else None,
        )
        self.events.append(event)
        said = observation["env_message"]
        left = len(said) - self.longest
        if left > 0:
            half = self.longest // 2
            said = said[:half] + SAID["cut"].format(left=left) + said[-half:]
        return {**observation, "env_message": said}


def permitted(tasks: TaskSet, ending: str) -> tuple[str, ...]:
    """Return the actions of a set's tasks, and the one that hands in."""
    return (*tasks.actions, "submit") if ending == "submit" else tasks.actions
