"""A run's configuration: MedAgentGym's flags over its YAML file, with the keys of credentials.toml.

    config = load_config(parser_of("Plays.").parse_args(["--config_path", "demo.yaml", "--num_steps", "5"]))

A flag that is given holds over the file, even if its value is 0. What cannot be used raises a
UsageError of one line before any model is called. Keys go into this process's environment and
nowhere else.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from code_agent.tasks import SETS
from common.command import UsageError, new_parser, positive

JOBS = 5  # episodes at once with --async_run
Kind = Literal["OpenAI", "Azure", "vLLM", "litellm"]
IDLE = ("log_probs", "max_total_tokens", "max_input_tokens")  # the reference's, without effect here
# What each type of model needs: a key of its section, and variables of the environment
NEEDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "OpenAI": ("model_name", ("OPENAI_API_KEY",)),
    "Azure": ("deployment_name", ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "API_VERSION")),
    "vLLM": ("model_name", ()),
    "litellm": ("model_name", ()),
}
# Flags that are keys of the file, too
FLAGS = {
    "task": ", ".join(SETS),
    "mode": "train, valid or test; default: test",
    "work_dir": "folder of all results",
    "result_dir_tag": "name of the folder of this run",
    "start_idx": "the first task",
    "end_idx": "one past the last; -1: all",
    "num_steps": "actions of an episode",
    "credentials_path": "TOML file of keys, put into the environment",
}


class Section(BaseModel):
    """Keys and values of the file. An unknown key is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Model(Section):
    """Where a model answers, and how it is sampled."""

    model_type: Kind
    model_name: str = ""
    deployment_name: str = ""
    port: int | None = None
    base_url: str | None = None
    max_new_tokens: PositiveInt | None = None
    temperature: float | None = None
    log_probs: Any = None
    max_total_tokens: Any = None
    max_input_tokens: Any = None


class DebuggerModel(Model):
    model_type: Kind = "litellm"
    n_retry: NonNegativeInt = 4
    retry_delay: Any = None


class AgentSection(Section):
    """n_retry: further tries of a request that failed. retry_delay: the longest wait between two,
    in seconds.
    """

    llm: Model
    n_retry: NonNegativeInt = 3
    retry_delay: float = 10.0


class DataSection(Section):
    data_path: Path | None = None
    metadata_path: Path | None = None


class EnvSection(Section):
    """n_retry: how often a reply is asked for with all its tries."""

    n_retry: PositiveInt = 1
    ending: Literal["submit", "oracle"] = "submit"


class RunConfig(Section):
    """A checked run. end_idx: one past the last task, or -1 for all. jobs: episodes at once.
    rollouts: episodes of each task; 0: one, whose file has no number of its own.
    """

    task: str
    work_dir: Path
    result_dir_tag: str
    start_idx: NonNegativeInt
    end_idx: Annotated[int, Field(ge=-1)]
    num_steps: PositiveInt
    credentials_path: Path | None = None
    Agent: AgentSection
    Data: DataSection
    Debugger: DebuggerModel | None = None
    Env: EnvSection = EnvSection()
    mode: Literal["train", "valid", "test"] = "test"
    jobs: PositiveInt = 1
    rollouts: NonNegativeInt = 0

    @property
    def folder(self) -> Path:
        return self.work_dir / self.task / self.result_dir_tag / self.mode

    def indices(self, there: int) -> list[int]:
        """Return the numbers of the tasks to play, of so many. Rollouts are of those that
        `rollout_indices.json` beside the metadata file lists for the set and mode, if it does.

        Raises UsageError: the file is no such list.
        """
        end = there if self.end_idx < 0 else min(self.end_idx, there)
        wanted = range(self.start_idx, end)
        metadata = self.Data.metadata_path
        path = metadata.with_name("rollout_indices.json") if metadata else None
        if not self.rollouts or path is None or not path.is_file():
            return list(wanted)
        try:
            listed = json.loads(path.read_text(encoding="utf-8")).get(self.task, {})
            chosen = [int(index) for index in listed.get(self.mode, wanted)]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path} cannot be read ({error}); expected lists of numbers by set and mode"
            ) from None
        return [index for index in chosen if index in wanted]


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    parser = new_parser(doc, allow_abbrev=False)
    add = parser.add_argument
    # The reference's README writes --config
    add("--config_path", "--config", type=Path, help="YAML file; the flags below hold over it")
    for name, about in FLAGS.items():
        add(f"--{name}", help=about)
    add("--async_run", action="store_true", help=f"{JOBS} episodes at once; --n_jobs: so many")
    add("--n_jobs", type=positive(int), help="episodes at once; default: 1")
    backend = "accepted; episodes share one process either way"
    add("--parallel_backend", choices=("joblib", "ray"), help=backend)
    return parser


def load_config(given: argparse.Namespace, calls: bool = True) -> RunConfig:
    """Return the configuration, flags over file.

    Without `calls` no model will be called, and no key is needed. Raises UsageError.
    """
    values = _read_yaml(given.config_path) if given.config_path else {}
    flags = {name: getattr(given, name, None) for name in RunConfig.model_fields}
    flags["jobs"] = given.n_jobs or (JOBS if given.async_run else None)
    values |= {name: value for name, value in flags.items() if value is not None}
    place = str(given.config_path or "no --config_path")
    try:
        config = RunConfig.model_validate(
            {name: value for name, value in values.items() if value is not None}
        )
    except ValidationError as error:
        raise UsageError(f"{place}: {first_problem(error)}") from None
    if config.task not in SETS:
        raise UsageError(f"task {config.task!r}: expected one of {', '.join(SETS)}")
    if 0 <= config.end_idx <= config.start_idx:
        raise UsageError(
            f"start_idx {config.start_idx} to end_idx {config.end_idx} leaves "
            "no task; end_idx is one past the last, or -1"
        )
    _load_credentials(config.credentials_path)
    models = {"Agent: llm": config.Agent.llm, "Debugger": config.Debugger}
    for name, model in models.items():
        if calls and model:
            check_model(name, model)
    used = {key for model in models.values() if model for key in model.model_fields_set}
    if idle := [key for key in IDLE if key in used]:
        print(f"{place}: {', '.join(idle)} have no effect here", file=sys.stderr)
    return config


def check_model(name: str, model: Model) -> None:
    """Raise UsageError if a section lacks the model's name, or the environment a key."""
    key, variables = NEEDS[model.model_type]
    if not getattr(model, key):
        raise UsageError(f"{name}: model_type {model.model_type} needs {key}")
    if absent := [variable for variable in variables if not os.environ.get(variable)]:
        ways = "write it into the file of --credentials_path, or set it in the environment"
        raise UsageError(f"{name}: model_type {model.model_type} needs {', '.join(absent)}; {ways}")


def first_problem(error: ValidationError) -> str:
    """Return on one line what is wrong with a section, and the key that may be meant."""
    problem = error.errors()[0]
    *sections, key = map(str, problem["loc"])
    if problem["type"] == "missing":
        return f"{'.'.join([*sections, key])} is missing; write it there, or give --{key}"
    if problem["type"] != "extra_forbidden":
        return f"{'.'.join([*sections, key])} is {problem['input']!r}: {problem['msg']}"
    known = {name for kind in _sections(Section) for name in kind.model_fields}
    near = get_close_matches(key, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{'.'.join(sections) or 'the file'} has no key {key!r}{hint}"


def _sections(kind: type[Section]) -> list[type[Section]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _sections(below))]


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config_path {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        first = " ".join(str(error).split())
        raise UsageError(f"--config_path {path} is no YAML: {first}") from None
    if not isinstance(value, dict):
        raise UsageError(
            f"--config_path {path}: expected keys and values, got {type(value).__name__}"
        )
    return value


def _load_credentials(path: Path | None) -> None:
    """Put the keys into the environment. A file that is missing matters only if a key is."""
    if path is None or not path.exists():
        return
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(
            f'credentials_path {path} cannot be read; expected lines such as OPENAI_API_KEY = "..."'
        ) from None
    os.environ.update({name: value for name, value in found.items() if isinstance(value, str)})
