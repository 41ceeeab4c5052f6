"""MedAgentGym's environment as a synchronous `gymnasium.Env` around `code_agent.game.Game`.

env = gymnasium.make("MedAgentEnv-v0", task_entrypoint=get_task_class("ehr_demo")).unwrapped
observation, info = env.reset(0)                                  # the task's number
observation, reward, terminated, truncated, info = env.step("validate_code", code="answer = 1")
env.step('{"action": "submit", "params": {"answer": "1"}}')       # a policy's raw reply
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import gymnasium

from code_agent.actions import Observation
from code_agent.environment import CodeEnvironment
from code_agent.game import Game
from code_agent.medagentgym.config import debugger_of
from code_agent.prompts import opening
from code_agent.protocol import Action
from code_agent.tasks.base import TaskSet
from common.settings import load_settings
from episodes.episode import AgentError


class Anything(gymnasium.Space[Any]):
    """Any value of a type. gymnasium's own spaces hold only arrays and short texts."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        super().__init__(shape=None, dtype=None)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        return self.kind()

    def contains(self, x: Any) -> bool:
        return isinstance(x, self.kind)


class MedAgentEnv(gymnasium.Env[Observation, str]):
    """One task after another. A mistake of the policy gives an observation, a machine failure
    raises.

    env_history: the observations, the task first. action_mapping: functions that replace actions by
    name. Each gets the parameters and returns an observation or its text.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (gymnasium's own form)

    def __init__(
        self,
        task_entrypoint: Callable[..., TaskSet],
        task_kwargs: Mapping[str, Any] | None = None,
        action_mapping: Mapping[str, Callable[..., Any]] | None = None,
        ending: str = "submit",
    ) -> None:
        """Read the rows. task_kwargs: data_path, mode, debugger_config. Raises AgentError."""
        given = {name: value for name, value in (task_kwargs or {}).items() if value is not None}
        debugger = debugger_of(given.pop("debugger_config", None))
        self.tasks = task_entrypoint(**given)
        self.ending = ending
        self.action_mapping = dict(action_mapping or {})
        self.action_space = Anything(str)
        self.observation_space = Anything(dict)
        self.env_history: list[Observation] = []
        self.game: Game | None = None
        # In a thread of its own, because notebooks already run a loop
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        sets = {self.tasks.name: self.tasks}
        self._environment = CodeEnvironment(
            load_settings(), {"ending": ending}, task_sets=sets, debugger=debugger
        )

    def reset(
        self, task_id: int = 0, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a task. Raises AgentError if it does not exist or cannot be played here."""
        super().reset(seed=seed)
        task_id = (options or {}).get("task_id", task_id)
        if not 0 <= task_id < len(self.tasks):
            raise AgentError(
                f"there is no task {task_id} in {self.tasks.name}; it has {len(self.tasks)}"
            )
        self._end()
        task = self.tasks.task(task_id)
        if why := self.tasks.unusable(task):
            raise AgentError(f"task {task.id} cannot be played here: {why}")
        self.game = Game(self.tasks, task, self._environment.context_of(task), self.ending)
        permitted = list(self.game.permitted)
        system, _ = opening(task, self.tasks.overview, permitted, 0)
        goal = f"{task.note}\n{task.question}".strip()
        about = {"task_goal": goal, "instruction": system["content"]}
        known = {"task_id": task.id, "question": task.question, "permitted_actions": permitted}
        observation = {"type": "initial_observation", "env_message": goal, "info": about}
        self.env_history = [observation]
        return observation, {"task_goal": goal, "task_info": known}

    def step(
        self, action: str, **params: Any
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action by name and parameters, or a policy's raw reply.

        Returns gymnasium's five values. `truncated` is always False. Raises RuntimeError before
        `reset`, EpisodeError if the sandbox or the debugger's model failed.
        """
        if self.game is None:
            raise RuntimeError("reset the environment before its first step")
        was_over = self.game.handed is not None
        is_name = params or action.isidentifier()
        if is_name and action in self.action_mapping:
            result = self.action_mapping[action](**params)
            said = result if isinstance(result, dict) else {"env_message": str(result)}
            observation = {"type": "environment_feedback", "env_message": "", **said}
        else:
            taken = Action(action, params) if is_name else action
            observation = self._run(self.game.answer(taken))
        self.env_history.append(observation)
        is_over = self.game.handed is not None
        reward = self.game.worth if is_over and not was_over else 0.0
        info = {"task_info": {"message": observation["env_message"], "ending": self.ending}}
        return observation, reward, is_over, False, info

    def close(self) -> None:
        self._end()
        for sandbox in self._environment.sandboxes.values():
            self._run(sandbox.close())
        self._environment.sandboxes.clear()
        self._run(self._loop.shutdown_asyncgens())  # connections to a debugger
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _end(self) -> None:
        if self.game:
            self._run(self._environment.leave(self.game.context))
        self.game = None

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


EHREnv = MedAgentEnv
for name in ("MedAgentEnv-v0", "EHREnv-v0"):
    gymnasium.register(
        name,
        entry_point="code_agent.medagentgym.env:MedAgentEnv",
        disable_env_checker=True,
        order_enforce=False,
    )
