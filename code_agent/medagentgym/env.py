"""MedAgentGym's environment as a real `gymnasium.Env`: a thin, synchronous face of
`code_agent.game.Game`.

    import gymnasium, code_agent.medagentgym.env
    from code_agent.tasks import get_task_class

    env = gymnasium.make("MedAgentEnv-v0", task_entrypoint=get_task_class("ehr_demo")).unwrapped
    observation, info = env.reset(0)                                  # the task's number
    observation, reward, terminated, truncated, info = env.step("validate_code", code="answer = 1")
    env.step('{"action": "submit", "params": {"answer": "1"}}')       # a policy's raw reply

`ending="submit"` is the default: the reward comes with the one answer that is handed in, without
feedback before. `ending="oracle"` is the reference's. What the policy gets wrong is an observation;
what the machine gets wrong raises.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar

import gymnasium

from code_agent.actions import Observation
from code_agent.debugger import debugger_of
from code_agent.environment import CodeEnvironment
from code_agent.game import LONGEST, Game
from code_agent.medagentgym.spaces import Anything, observations
from code_agent.protocol import Action
from code_agent.tasks.base import TaskSet
from common.settings import load_settings
from episodes.episode import AgentError

ID = "MedAgentEnv-v0"
GREETING = "Hello! I answer questions about medical data by programs. What is the task?"
Result = TypeVar("Result")


class MedAgentEnv(gymnasium.Env[Observation, str]):
    """One task after another. chat: messages with role and timestamp, in seconds of the episode.

    env_history: what actions returned, the task first. terminate_on_infeasible: whether
    `report_infeasible` ends an episode. need_context: whether programs are put into one of the
    task's. action_mapping: other functions for actions, by name, called with the parameters; each
    returns an observation or its text.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (gymnasium's own form)

    def __init__(
        self,
        task_entrypoint: Callable[..., TaskSet],
        task_kwargs: Mapping[str, Any] | None = None,
        action_mapping: Mapping[str, Callable[..., Any]] | None = None,
        ending: str = "submit",
    ) -> None:
        """Read the set's rows. task_kwargs: data_path, mode, and debugger_config (the section
        `Debugger` of a configuration; without a model errors are explained offline).

        Raises AgentError if the set's rows cannot be read.
        """
        given = dict(task_kwargs or {})
        debugger = debugger_of(given.pop("debugger_config", None))
        self.tasks = task_entrypoint(
            **{name: value for name, value in given.items() if value is not None}
        )
        self.ending = ending
        self.action_mapping = dict(action_mapping or {})
        self.action_space = Anything(str)
        self.observation_space = observations()
        self.terminate_on_infeasible = self.need_context = False
        self.chat: list[dict[str, Any]] = []
        self.env_history: list[Observation] = []
        self.goal_object: list[dict[str, str]] = []
        self.game: Game | None = None
        self._loop = _Loop()
        sets = {self.tasks.name: self.tasks}
        self._environment = CodeEnvironment(
            load_settings(), {"ending": ending}, task_sets=sets, debugger=debugger
        )

    def reset(
        self, task_id: int = 0, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a task.

        Raises AgentError if it does not exist or cannot be played here.
        """
        super().reset(seed=seed)
        task_id = (options or {}).get("task_id", task_id)
        if not 0 <= task_id < len(self.tasks):
            raise AgentError(
                f"there is no task {task_id} in {self.tasks.name}; it has {len(self.tasks)}"
            )
        self._end()
        task = self.tasks.task(task_id)
        if why := self.tasks.unusable(task):
            raise AgentError(f"task {task.id} cannot be played here: it {why}")
        self.game = Game(self.tasks, task, self._environment.context_of(task), self.ending, LONGEST)
        self.need_context = bool(task.context)
        opening = self._environment.prompts.opening(
            task, self.tasks.overview, self.game.permitted, 0
        )
        goal = f"{task.note}\n{task.question}".strip()
        self.goal_object = [{"type": "text", "text": goal}]
        self.chat = []
        self.env_history = []
        self._begun = time.monotonic()
        self._say("assistant", GREETING)
        self._say("user", goal)
        about = {
            "task_goal": goal,
            "instruction": opening[0]["content"],
            "overall": self.tasks.overview,
        }
        info = {
            "task_id": task.id,
            "question": task.question,
            "permitted_actions": list(self.game.permitted),
        }
        observation = {"type": "initial_observation", "env_message": goal, "info": about}
        return self._seen(observation), {"task_goal": goal, "task_info": info}

    def step(
        self, action: str | Mapping[str, Any], **params: Any
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action by name and parameters, or a policy's raw reply.

        Returns the observation, the reward, whether the episode ended, False, and the task's
        information. Raises RuntimeError before `reset`, EpisodeError if the sandbox or the
        debugger's model failed.
        """
        if self.game is None:
            raise RuntimeError("reset the environment before its first step")
        taken = self._action(action, params)
        own = self.action_mapping.get(taken.name) if isinstance(taken, Action) else None
        if own and isinstance(taken, Action):
            observation = _observed(own(**taken.params))
            done = False
        else:
            step = self._loop.run(self.game.answer(taken))
            observation = dict(step.observation)
            done = step.done
        if isinstance(taken, Action):
            self._heard(taken)
            done = done or (self.terminate_on_infeasible and taken.name == "report_infeasible")
        reward = self.game.worth if done and self.game.handed else 0.0
        info = {"task_info": {"message": observation["env_message"], "ending": self.ending}}
        return self._seen(observation), reward, done, False, info

    def close(self) -> None:
        self._end()
        for sandbox in self._environment.sandboxes.values():
            self._loop.run(sandbox.close())
        self._environment.sandboxes.clear()
        self._loop.close()

    def _action(self, action: str | Mapping[str, Any], params: dict[str, Any]) -> str | Action:
        if isinstance(action, Mapping):
            return Action(str(action.get("action")), dict(action.get("params") or {}))
        bare = params or action.isidentifier()
        return Action(action, params) if bare else action

    def _heard(self, action: Action) -> None:
        """Add what an action says to the user to the chat."""
        role = {"send_msg_to_user": "assistant", "report_infeasible": "infeasible"}.get(action.name)
        if role and isinstance(action.params.get("text"), str):
            self._say(role, action.params["text"])

    def _say(self, role: str, message: str) -> None:
        self.chat.append({"role": role, "timestamp": self._elapsed(), "message": message})

    def _elapsed(self) -> float:
        """Return the seconds of the episode, in tenths, so that two resets look alike."""
        return round(time.monotonic() - self._begun, 1)

    def _seen(self, observation: Observation) -> Observation:
        """Return an observation with every field that its space names."""
        self.env_history.append(observation)
        known = {name: observation[name] for name in ("type", "env_message")}
        ran = {
            "status": observation.get("status", ""),
            "execution_time": observation.get("execution_time", 0.0),
        }
        info = observation.get("info") or {
            name: value for name, value in observation.items() if name == "problem"
        }
        about = {"goal": self.goal_object[0]["text"], "elapsed_time": self._elapsed(), "info": info}
        said = {"chat_messages": tuple(self.chat), "history": self.env_history}
        return deepcopy(known | ran | about | said)  # a user may keep and change what was returned

    def _end(self) -> None:
        if self.game:
            self._loop.run(self.game.context.sandbox.end(self.game.context.episode))
        self.game = None


class _Loop:
    """An event loop in a thread of its own, so that an environment also works where a loop runs
    already, as in a notebook.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)


def _observed(result: Any) -> Observation:
    known = result if isinstance(result, dict) else {"env_message": str(result)}
    return {"type": "environment_feedback", "env_message": "", **known}


EHREnv = MedAgentEnv
names: Sequence[str] = (ID, "EHREnv-v0")
for name in names:
    gymnasium.register(
        name,
        entry_point="code_agent.medagentgym.env:MedAgentEnv",
        disable_env_checker=True,
        order_enforce=False,
    )
