"""The models that a configuration names: the policy's endpoint, a server for a folder, the
debugger.

    with served(config.Agent.llm, Path("vllm.log")) as model:
        endpoint = policy_endpoint(model, attempts=4, longest_wait=10.0)

Keys come from the environment and stand in no message.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from code_agent.debugger import Debugger
from code_agent.medagentgym.config import DebuggerModel, Model, first_problem
from common.command import UsageError
from common.llm.endpoint import ChatModel, LLMEndpoint
from common.llm.retry import Patience
from episodes.policy import Endpoint
from training.serve import serve

# Seconds of one request, and of one reply with all its tries
TIMEOUT = 300.0
BUDGET = 900.0


def endpoint_of(model: Model) -> LLMEndpoint:
    """Return where a model answers, by litellm's name of it."""
    if model.model_type == "litellm":
        return LLMEndpoint(model.model_name, model.base_url, None, TIMEOUT)
    if model.model_type == "Azure":
        os.environ.setdefault("AZURE_API_VERSION", os.environ["API_VERSION"])  # litellm's name
        address = os.environ["AZURE_OPENAI_ENDPOINT"]
        key = os.environ["AZURE_OPENAI_API_KEY"]
        return LLMEndpoint(f"azure/{model.deployment_name}", address, key, TIMEOUT)
    name = f"openai/{model.model_name}"
    if model.model_type == "OpenAI":
        base_url = model.base_url or os.environ.get("OPENAI_BASE_URL")
        return LLMEndpoint(name, base_url, os.environ["OPENAI_API_KEY"], TIMEOUT)
    base_url = model.base_url or f"http://127.0.0.1:{model.port or 8000}/v1"
    return LLMEndpoint(name, base_url, os.environ.get("VLLM_API_KEY", "none"), TIMEOUT)


def policy_endpoint(model: Model, attempts: int, longest_wait: float) -> Endpoint:
    """Return where the policy answers and how it is sampled: one for all episodes of a run, with
    its connections and its pauses.
    """
    where = endpoint_of(model)
    # A server of ours takes every value; what other models take, litellm knows
    translated = model.model_type != "vLLM"
    patience = Patience(attempts, BUDGET, longest_wait, pauses_count=True)
    return Endpoint(
        where.base_url or "",
        where.model,
        temperature=model.temperature,
        top_p=None,
        max_tokens=model.max_new_tokens,
        chat_model=ChatModel(where, patience, translated),
    )


@contextlib.contextmanager
def served(model: Model, log: Path) -> Iterator[Model]:
    """Yield the model with an address: a folder without a port or an address is served here until
    the block ends.

    Raises ConfigError: the folder cannot be served; ServeError: the server does not start.
    """
    answers_already = model.port or model.base_url
    if model.model_type != "vLLM" or answers_already or not Path(model.model_name).is_dir():
        yield model
        return
    print(f"starting vLLM for {model.model_name}, log in {log}", file=sys.stderr, flush=True)
    with serve(model.model_name, log, tools=False) as server:
        yield model.model_copy(update={"base_url": server.base_url, "model_name": server.name})


def debugger_of(section: DebuggerModel | Mapping[str, Any] | None) -> Debugger:
    """Return the debugger of a section `Debugger`. Without a model errors are explained offline.

    Raises UsageError: the section has another form.
    """
    try:
        model = DebuggerModel.model_validate(section or {})
    except ValidationError as error:
        raise UsageError(f"Debugger: {first_problem(error)}") from None
    if not (model.model_name or model.deployment_name):
        return Debugger()
    where = endpoint_of(model)
    return Debugger(
        where.model,
        where.base_url,
        where.api_key,
        max_tokens=model.max_new_tokens or 1024,
        temperature=model.temperature or 0.0,
        attempts=1 + model.n_retry,
    )
