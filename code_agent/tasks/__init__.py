"""MedAgentGym's sets of tasks by name."""

from code_agent.tasks.base import BUNDLED, TaskSet
from code_agent.tasks.sets import REFERENCE
from episodes.episode import AgentError

SETS: dict[str, type[TaskSet]] = {**BUNDLED, **REFERENCE}


def get_task_class(name: str) -> type[TaskSet]:
    """Return the class of a set. Raises AgentError for an unknown name."""
    if name not in SETS:
        raise AgentError(f"there is no set {name!r}; the sets are {', '.join(SETS)}")
    return SETS[name]
