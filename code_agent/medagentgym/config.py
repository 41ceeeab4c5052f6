"""The configuration of a run of `main.py` or `rollout.py`: MedAgentGym's flags over its YAML file,
and credentials.toml.

    config = load_config(parse(["--config_path", "code_agent/configs/demo.yaml", "--num_steps", "5"]))

A flag that is given takes precedence over the file, even if its value is 0. What cannot be used
raises a UsageError of one line, before any model is called. Keys go into this process's environment
and nowhere else.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from code_agent.game import ENDINGS
from code_agent.tasks import SETS
from common.command import UsageError, new_parser, number, positive

REQUIRED = ("task", "work_dir", "result_dir_tag", "start_idx", "end_idx", "num_steps")
SECTIONS = ("Agent", "Data")
JOBS = 5
MODES = ("train", "valid", "test")
# Keys that each type of model needs in its section, and in the environment or the credentials file.
NEEDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OpenAI": (("model_name",), ("OPENAI_API_KEY",)),
    "Azure": (
        ("deployment_name",),
        ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "API_VERSION"),
    ),
    "vLLM": (("model_name",), ()),
}
# What the file may hold, by section; keys of a model that the reference knows and that change
# nothing here.
MODEL = (
    *("model_type", "model_name", "deployment_name", "port", "base_url"),
    *("max_new_tokens", "temperature"),
)
WITHOUT_EFFECT = ("log_probs", "max_total_tokens", "max_input_tokens")
KEYS: Mapping[str, tuple[str, ...]] = {
    "": (*REQUIRED, "credentials_path", "Agent", "Data", "Debugger", "Env"),
    "Agent": ("llm", "n_retry", "retry_delay"),
    "Agent.llm": MODEL,
    "Data": ("data_path", "metadata_path"),
    "Debugger": (*MODEL, "n_retry", "retry_delay"),
    "Env": ("n_retry", "ending"),
}
WHOLE = number(int, lambda value: value >= 0, "of 0 or more")
TO_END = number(int, lambda value: value >= -1, "of 0 or more, or -1 for all")


@dataclass(frozen=True)
class RunConfig:
    """A checked run. end: one past the last task, or None for all. jobs: episodes at once. n_retry:
    further tries of a request that failed. replies: how often a reply is asked for with all its
    tries (`n_retry` of `Env`).
    """

    task: str
    work_dir: Path
    tag: str
    mode: str
    start: int
    end: int | None
    num_steps: int
    jobs: int
    data_path: Path | None
    llm: Mapping[str, Any]
    debugger: Mapping[str, Any] | None
    n_retry: int = 3
    replies: int = 1
    retry_delay: float = 10.0
    ending: str = "submit"
    rollouts: int = 0
    metadata_path: Path | None = None

    @property
    def folder(self) -> Path:
        return self.work_dir / self.task / self.tag / self.mode


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    parser = new_parser(doc, allow_abbrev=False)
    add = parser.add_argument
    # The reference's README writes --config
    add("--config_path", "--config", type=Path, help="YAML file; the flags below hold over it")
    add("--task", help=", ".join(SETS))
    add("--credentials_path", type=Path, help="TOML file of keys, put into the environment")
    add("--work_dir", type=Path)
    add("--result_dir_tag")
    add("--start_idx", type=WHOLE)
    add("--end_idx", type=TO_END, help="one past the last; -1: all")
    add("--num_steps", type=positive(int), help="actions of an episode")
    add(
        "--async_run",
        action="store_true",
        help=f"{JOBS} episodes at once, or as many as --n_jobs says",
    )
    add(
        "--n_jobs",
        type=positive(int),
        help=f"episodes at once; default: 1, with --async_run {JOBS}",
    )
    add(
        "--parallel_backend",
        choices=("joblib", "ray"),
        help="accepted; episodes share one process either way",
    )
    add("--mode", choices=MODES, default="test")
    return parser


def load_config(given: argparse.Namespace, calls: bool = True) -> RunConfig:
    """Return the configuration, flags over file.

    Without `calls` no model will be called, and no key is needed. Raises UsageError.
    """
    file = _read_yaml(given.config_path) if given.config_path else {}
    check_keys(file, given.config_path)
    values = _required(given, file)
    _load_credentials(_given(given, file, "credentials_path"))
    agent = file["Agent"]
    data = file["Data"]
    debugger = file.get("Debugger") if calls else None
    env = file.get("Env") or {}
    start = int(values["start_idx"])
    end = int(values["end_idx"])
    if 0 <= end <= start:
        raise UsageError(
            f"start_idx {start} to end_idx {end} leaves "
            "no task; end_idx is one past the last, or -1"
        )
    ending = env.get("ending", "submit")
    if ending not in ENDINGS:
        raise UsageError(f"Env ending {ending!r}: expected {' or '.join(ENDINGS)}")
    return RunConfig(
        task=str(values["task"]),
        work_dir=Path(str(values["work_dir"])),
        tag=str(values["result_dir_tag"]),
        mode=given.mode,
        start=start,
        end=None if end < 0 else end,
        num_steps=int(values["num_steps"]),
        jobs=given.n_jobs or (JOBS if given.async_run else 1),
        data_path=Path(data["data_path"]) if data.get("data_path") else None,
        llm=check_model(agent.get("llm"), "Agent: llm") if calls else {},
        debugger=check_model(debugger, "Debugger") if debugger else None,
        n_retry=int(agent.get("n_retry", 3)),
        replies=int(env.get("n_retry", 1)),
        retry_delay=float(agent.get("retry_delay", 10)),
        ending=ending,
        rollouts=getattr(given, "num_rollouts", 0),
        metadata_path=Path(data["metadata_path"]) if data.get("metadata_path") else None,
    )


def _required(given: argparse.Namespace, file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a run cannot do without, flags over file.

    Raises UsageError: one is missing, the task is unknown, or the file lacks a section.
    """
    values = {name: _given(given, file, name) for name in REQUIRED}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} is missing; give "
            f"--{missing[0]}, or a file with it by --config_path"
        )
    if values["task"] not in SETS:
        raise UsageError(f"task {values['task']!r}: expected one of {', '.join(SETS)}")
    for section in SECTIONS:
        if not isinstance(file.get(section), dict):
            raise UsageError(
                f"{given.config_path or 'no --config_path'}: the section {section} is missing"
            )
    return values


def check_keys(file: Mapping[str, Any], path: Path) -> None:
    """Name the file's keys that do nothing here, once.

    Raises UsageError: an unknown key, with the nearest known one.
    """
    idle = []
    for place, known in KEYS.items():
        section: Any = file
        for name in place.split(".") if place else ():
            section = section.get(name) if isinstance(section, dict) else None
        if not isinstance(section, dict):
            continue
        for key in section:
            if key in WITHOUT_EFFECT and place.endswith(("llm", "Debugger")):
                idle.append(key)
            elif key not in known:
                near = get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                raise UsageError(f"{path}: {place or 'the file'} has no key {key!r}; {hint}")
    if idle:
        named = ", ".join(dict.fromkeys(idle))
        print(f"{path}: {named} have no effect here", file=sys.stderr)


def check_model(section: Any, name: str) -> Mapping[str, Any]:
    """Return a section that names a model.

    Raises UsageError if it names none, or a key it needs is not set.
    """
    if not isinstance(section, dict) or "model_type" not in section:
        raise UsageError(
            f"{name}: expected model_type {', '.join(NEEDS)} or litellm, with model_name"
        )
    kind = section["model_type"]
    keys, variables = NEEDS.get(kind, (("model_name",), ()))
    if kind not in NEEDS and kind != "litellm":
        raise UsageError(
            f"{name}: model_type {kind!r}; expected "
            f"{', '.join(NEEDS)}, or litellm with its model_name"
        )
    if absent := [key for key in keys if not section.get(key)]:
        raise UsageError(f"{name}: model_type {kind} needs {', '.join(absent)}")
    if absent := [variable for variable in variables if not os.environ.get(variable)]:
        ways = "write it into the file of --credentials_path, or set it in the environment"
        raise UsageError(f"{name}: model_type {kind} needs {', '.join(absent)}; {ways}")
    return section


def _given(given: argparse.Namespace, file: Mapping[str, Any], name: str) -> Any:
    value = getattr(given, name)
    return file.get(name) if value is None else value


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


def _load_credentials(path: Any) -> None:
    """Put the keys into the environment.

    A named file that is missing is an error only if a key is missing.
    """
    if path is None or not Path(path).exists():
        return
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(
            f'credentials_path {path} cannot be read; expected lines such as OPENAI_API_KEY = "..."'
        ) from None
    os.environ.update({name: str(value) for name, value in found.items() if isinstance(value, str)})


def chosen_indices(config: RunConfig, there: int) -> list[int]:
    """Return the numbers of the tasks to play: of rollouts those that `rollout_indices.json` beside
    the metadata file lists for the set and mode, where there is such a file; else all.

    Both stay between start_idx and end_idx. Raises UsageError: the file is no such list.
    """
    wanted = range(config.start, last_index(config, there))
    path = config.metadata_path.with_name("rollout_indices.json") if config.metadata_path else None
    if not config.rollouts or path is None or not path.is_file():
        return list(wanted)
    try:
        listed = json.loads(path.read_text(encoding="utf-8")).get(config.task, {})
        indices = listed.get(config.mode)
        if indices is None:
            return list(wanted)
        chosen = [int(index) for index in indices if int(index) in wanted]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} cannot be read ({error}); expected lists of numbers by set and mode"
        ) from None
    print(f"{len(chosen)} tasks of {path}", file=sys.stderr)
    return chosen


def last_index(config: RunConfig, there: int) -> int:
    """Return one past the last task: as configured, else as the metadata file says, and never more
    than there are.
    """
    if config.end is not None:
        return min(config.end, there)
    known = {}
    if config.metadata_path and config.metadata_path.is_file():
        known = json.loads(config.metadata_path.read_text(encoding="utf-8"))
    return min(known.get(config.task, {}).get(config.mode, there), there)
