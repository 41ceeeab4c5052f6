"""Read a run's configuration: MedAgentGym's flags override its YAML file.

Keys of credentials.toml go into the environment and appear in no message.
"""

import argparse
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from code_agent.debugger import Debugger
from code_agent.tasks import SETS, get_task_class
from common.command import UsageError, new_parser, positive
from common.llm.endpoint import LLMEndpoint

JOBS = 5  # episodes at once with --async_run
TIMEOUT = 300.0  # seconds of one request
# By type of model: litellm's prefix, and the variables of its key and its address
ADDRESSES = {
    "litellm": ("", "", ""),
    "vLLM": ("openai/", "VLLM_API_KEY", ""),
    "OpenAI": ("openai/", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "Azure": ("azure/", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"),
}
NEEDED = {
    "OpenAI": ("OPENAI_API_KEY",),
    "Azure": ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "API_VERSION"),
}


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Model(Section):
    """A model's address and sampling. n_retry: further tries of the debugger's requests."""

    model_type: Literal["OpenAI", "Azure", "vLLM", "litellm"] = "litellm"
    model_name: str = ""
    deployment_name: str = ""
    port: int | None = None
    base_url: str | None = None
    max_new_tokens: PositiveInt | None = None
    temperature: float | None = None
    n_retry: NonNegativeInt = 4
    # Keys of the reference's files that have no effect here
    retry_delay: Any = None
    log_probs: Any = None
    max_total_tokens: Any = None
    max_input_tokens: Any = None


class AgentSection(Section):
    """n_retry: further tries of a request. retry_delay: longest wait between two, in seconds."""

    llm: Model
    n_retry: NonNegativeInt = 3
    retry_delay: float = 10.0


class DataSection(Section):
    data_path: Path | None = None
    metadata_path: Any = None


class EnvSection(Section):
    """n_retry: how often a reply is asked for, each time with all its tries."""

    n_retry: PositiveInt = 1
    ending: Literal["submit", "oracle"] = "submit"


class RunConfig(Section):
    """A checked run. A key with a description is a flag, too.

    jobs: episodes at once. rollouts: 0 for one in a file without a number.
    """

    task: str = Field(description=", ".join(SETS))
    mode: Literal["train", "valid", "test"] = Field(
        "test", description="train, valid or test; default: test"
    )
    work_dir: Path = Field(description="folder of all results")
    result_dir_tag: str = Field(description="name of the folder of this run")
    start_idx: NonNegativeInt = Field(description="the first task")
    end_idx: int = Field(ge=-1, description="one past the last; -1: all")
    num_steps: PositiveInt = Field(description="actions of an episode")
    credentials_path: Path | None = Field(
        None, description="TOML file of keys, put into the environment"
    )
    Agent: AgentSection
    Data: DataSection
    Debugger: Model | None = None
    Env: EnvSection = EnvSection()
    jobs: PositiveInt = 1
    rollouts: NonNegativeInt = 0

    @property
    def folder(self) -> Path:
        return self.work_dir / self.task / self.result_dir_tag / self.mode


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    parser = new_parser(doc, allow_abbrev=False)
    add = parser.add_argument
    # The reference's README writes --config
    add("--config_path", "--config", type=Path, help="YAML file; the flags below hold over it")
    for name, field in RunConfig.model_fields.items():
        if field.description:
            add(f"--{name}", help=field.description)
    add("--async_run", action="store_true", help=f"{JOBS} episodes at once; --n_jobs: so many")
    add("--n_jobs", type=positive(int), help="episodes at once; default: 1")
    backend = "accepted; episodes share one process either way"
    add("--parallel_backend", choices=("joblib", "ray"), help=backend)
    numbered = "episodes of a task, in numbered files; default: one in a file without a number"
    add("--num_rollouts", dest="rollouts", type=positive(int), help=numbered)
    return parser


def load_config(given: argparse.Namespace) -> RunConfig:
    """Return the configuration. Raises UsageError: a value is missing or cannot be."""
    values = _read_yaml(given.config_path) if given.config_path else {}
    flags = {name: getattr(given, name, None) for name in RunConfig.model_fields}
    flags["jobs"] = given.n_jobs or (JOBS if given.async_run else None)
    values |= {name: value for name, value in flags.items() if value is not None}
    known = {name: value for name, value in values.items() if value is not None}
    config: RunConfig = _checked(RunConfig, known, str(given.config_path or "no --config_path"))
    get_task_class(config.task)
    if 0 <= config.end_idx <= config.start_idx:
        raise UsageError(
            f"start_idx {config.start_idx} to end_idx {config.end_idx} leaves no task; end_idx is "
            "one past the last, or -1"
        )
    _load_credentials(config.credentials_path)
    return config


def _checked(kind: type[Any], values: Any, place: str) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        seen = "" if problem["type"] == "missing" else f" is {problem['input']!r}"
        raise UsageError(f"{place}: {key}{seen}: {problem['msg']}") from None


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"--config_path {path}: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise UsageError(f"--config_path {path}: expected keys and values, got {value!r:.80}")
    return value


def _load_credentials(path: Path | None) -> None:
    """Put the keys into the environment. The file may be missing if they are there already."""
    if path is None or not path.exists():
        return
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(
            f'credentials_path {path} cannot be read; expected lines such as OPENAI_API_KEY = "..."'
        ) from None
    os.environ.update({name: value for name, value in found.items() if isinstance(value, str)})


def endpoint_of(model: Model) -> LLMEndpoint:
    """Return the address of a model by its litellm name. Raises UsageError: name or key is missing."""
    named = "deployment_name" if model.model_type == "Azure" else "model_name"
    name = getattr(model, named)
    if not name:
        raise UsageError(f"model_type {model.model_type} needs {named}")
    needed = NEEDED.get(model.model_type, ())
    if absent := [variable for variable in needed if not os.environ.get(variable)]:
        raise UsageError(
            f"model_type {model.model_type} needs {', '.join(absent)}; write it into the file of "
            "--credentials_path, or set it in the environment"
        )
    if model.model_type == "Azure":
        os.environ.setdefault("AZURE_API_VERSION", os.environ["API_VERSION"])  # litellm's name
    prefix, key, address = ADDRESSES[model.model_type]
    base_url = model.base_url or os.environ.get(address)
    api_key = os.environ.get(key)
    is_ours = model.model_type == "vLLM"
    if is_ours:
        base_url = base_url or f"http://127.0.0.1:{model.port or 8000}/v1"
        api_key = api_key or "none"
    # A server of ours takes every value. What other models take, litellm knows
    return LLMEndpoint(f"{prefix}{name}", base_url, api_key, TIMEOUT, translated=not is_ours)


def debugger_of(section: Model | Mapping[str, Any] | None) -> Debugger:
    """Return the debugger of a section, offline without a model. Raises UsageError."""
    model: Model = _checked(Model, section or {}, "Debugger")
    if not (model.model_name or model.deployment_name):
        return Debugger()
    where = endpoint_of(model)
    return Debugger(
        where.model,
        base_url=where.base_url,
        api_key=where.api_key,
        attempts=1 + model.n_retry,
        max_tokens=model.max_new_tokens or 1024,
        temperature=model.temperature or 0.0,
    )
