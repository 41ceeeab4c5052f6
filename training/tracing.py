"""The two ways to trace an agent's LLM calls, each a tracer for the runners and an adapter for the trainer.

With the LLM proxy (default) the proxy's spans hold the token ids; without it agent-lightning's client-side tracer
records them in the runner, which works for one episode at a time in a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from training.plan import Plan

if TYPE_CHECKING:
    from agentlightning import Tracer
    from agentlightning.adapter.triplet import TraceToTripletBase


def runner_tracer(plan: Plan) -> Tracer:
    """The tracer of a runner process."""
    import agentlightning as agl

    return agl.OtelTracer() if plan.llm_proxy else agl.AgentOpsTracer()


def trace_adapter(plan: Plan) -> TraceToTripletBase:
    """What turns a rollout's spans into triplets."""
    import agentlightning as agl

    return agl.LlmProxyTraceToTriplet() if plan.llm_proxy else agl.TracerTraceToTriplet()
