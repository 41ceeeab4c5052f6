"""Agents of medical-agent-rl in verifiers, in Inspect and in OpenEnv.

`vf-eval medical-agents --env.taskset.agent diagnosis` finds the taskset and the harness here;
`inspect eval medical_agents/diagnosis` finds its tasks by an entry point;
`~/openenv/bin/python -m medical_agents.for_openenv diagnosis` serves its episodes.
"""

from typing import Any

__all__ = ["MedicalHarness", "MedicalTaskset"]


def __getattr__(name: str) -> Any:
    """Import verifiers only where it is asked for: Inspect's users need not have it."""
    if name not in __all__:
        raise AttributeError(name)
    from medical_agents import for_verifiers

    return getattr(for_verifiers, name)
