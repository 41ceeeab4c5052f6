"""What an evaluation may evaluate: a served model, an endpoint, any provider through litellm, gold answers, a template.

    policy = find_policy(model="runs/NAME", base_url=None, settings=load_settings())
    policy.kind, policy.name          # "served", "/.../runs/NAME/checkpoints/global_step_20/actor/huggingface"

Imports nothing heavy; the server itself is started by `evaluation/evaluate.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.settings import Settings

if TYPE_CHECKING:
    from episodes.openai_agents import Endpoint
    from evaluation.jobs import Job, Play
    from tools.sql.query import QueryTool
    from tools.sql.schema_tools import SchemaTools

SAMPLED_BYTES = 65_536  # of both ends of a weight file: another training changes all of them


class PolicyError(ValueError):
    """A model that is none of what can be evaluated; the message says what can."""


@dataclass(frozen=True)
class Policy:
    """`kind`: "served" (a folder or hub id, by a vLLM of our own), "endpoint", "litellm", "gold" or "rule"."""

    kind: str
    name: str
    base_url: str | None = None

    @property
    def samples(self) -> bool:
        """Whether another sample of the same question may differ."""
        return self.kind not in ("gold", "rule")

    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes it from others; of a folder also its content."""
        content = {"model_digest": _digest(Path(self.name))} if self.kind == "served" else {}
        address = re.sub(r"//[^/@]*@", "//", self.base_url) if self.base_url else None  # without a password
        return {"model": self.name, "kind": self.kind, "base_url": address} | content


def find_policy(model: str, base_url: str | None, settings: Settings) -> Policy:
    """What `--model` means: with a base URL the name there, else a folder or run, a litellm name, a hub id.

    Raises:
        PolicyError: none of these.
    """
    if base_url:
        return Policy("endpoint", model, base_url.rstrip("/"))
    if Path(model).is_dir():
        return Policy("served", str(Path(model).resolve()))
    from episodes.litellm_client import providers

    first, slash, _ = model.partition("/")
    if slash and first in providers():
        return Policy("litellm", model)
    if slash:
        return Policy("served", model)
    if settings.openai_base_url:
        return Policy("endpoint", model, settings.openai_base_url.rstrip("/"))
    raise PolicyError(
        f"--model {model!r} is no folder, no hub id (owner/name) and no litellm name (provider/name); "
        "for a model of an OpenAI-compatible endpoint give --base-url, or set OPENAI_BASE_URL"
    )


def without_model(kind: str, tool: QueryTool) -> Play:
    """Plays "gold" or "rule", the queries in a thread as an agent's are."""
    from data.load import statements
    from sql_agent.baseline import TemplateAgent, gold_episode

    agent = TemplateAgent(tool) if kind == "rule" else None

    async def play(job: Job) -> Any:
        question, answer = job.task.question, job.task.answer
        if agent is not None:
            return await asyncio.to_thread(agent.episode, question)
        return await asyncio.to_thread(gold_episode, question, statements(job.row), answer, tool)

    return play


def with_model(endpoint: Endpoint, max_turns: int, tool: QueryTool, schema: SchemaTools | None) -> Play:
    """Plays a model's episodes with the agent of training."""
    from episodes.openai_agents import run_episode

    async def play(job: Job) -> Any:
        return await run_episode(job.task.question, endpoint, tool, max_turns, schema)

    return play


def _digest(folder: Path) -> str | None:
    """A hash of a folder's configuration and of both ends of its weights; None for a hub id."""
    if not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.json")) + sorted(folder.glob("*.jinja")):
        with path.open("rb") as file:
            digest.update(f"{path.name} {path.stat().st_size}".encode() + file.read(SAMPLED_BYTES))
            file.seek(max(0, path.stat().st_size - SAMPLED_BYTES))
            digest.update(file.read())
    return digest.hexdigest()
