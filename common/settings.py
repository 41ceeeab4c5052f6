"""Every setting the project reads from the environment, in one place.

Precedence: environment variable, then the `.env` file of the repository root, then the default
here. Command-line flags are applied on top by the program that owns them. `env_template` lists the
same names; a test keeps both equal.

    from common.settings import load_settings
    load_settings().database_url
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from common.command import UsageError, undecoded

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_LLM_CACHE = ROOT / "outputs" / "llm_cache.sqlite"
DEFAULT_DATABASE = f"sqlite:///{ROOT / 'data' / 'medical.db'}"


def below_root(path: Path | str) -> str:
    """Return a path of the repository without the way to it; any other as it is."""
    return str(Path(path).relative_to(ROOT)) if Path(path).is_relative_to(ROOT) else str(path)


class SettingsError(UsageError):
    """A setting has a value that cannot be used. The message names the setting, the problem and the
    fix.
    """


class Settings(BaseSettings):
    """Typed settings; the variable's name is the field's name in capitals."""

    model_config = SettingsConfigDict(
        env_file=ROOT / ".env", env_file_encoding="utf-8", extra="ignore", env_ignore_empty=True
    )

    # What the agent queries, and how it samples.
    database_url: str = Field(
        DEFAULT_DATABASE, description="SQLAlchemy URL of the database the tool reads."
    )
    database_tables: str = Field(
        "drugs_info,disease", min_length=1, description="The tables the agent may read."
    )
    database_tools: Literal["query", "schema"] = Field(
        "query", description="schema: also tools that list the tables."
    )
    database_strict: bool = Field(
        False, description="1: refuse a database account that may do more than read."
    )
    fhir_base_url: str = Field(
        "http://localhost:8080/fhir/", description="FHIR server that medagentbench asks."
    )
    sandbox: Literal["bubblewrap", "process"] = Field(
        "bubblewrap", description="process: run programs unprotected."
    )
    sandbox_seconds: float = Field(
        10.0, gt=0, le=3600, description="Seconds that a program of the model may take."
    )
    sandbox_memory: float = Field(
        1.0, gt=0, le=1024, description="GiB of memory that the programs of an episode may have."
    )
    max_turns: int = Field(
        3, ge=1, le=64, description="Calls of the policy in one episode; unset: the agent's own."
    )
    min_turns: int | None = Field(
        None, ge=1, le=64, description="Set: budgets are drawn by task, from this on."
    )
    turns_seed: int = Field(0, description="Seed of the budgets drawn by task, in training.")
    max_tokens: int | None = Field(
        None, ge=1, description="Tokens the policy may generate in one call; unset: preset."
    )
    temperature: float = Field(
        1.0, gt=0, le=2, description="Sampling temperature of the agent while training."
    )
    episode_timeout: float = Field(
        300.0, gt=0, description="Seconds one episode may take, judge included."
    )

    # The model that is trained, when no --model is given.
    base_model: str | None = Field(
        None, description="Model folder or hub id used when --model is not given."
    )

    # Judges: the teacher LLM, else the reward-model endpoint, else the offline reference judge,
    # which pays what is quoted; other words need TEACHER_MODEL.
    teacher_api_key: SecretStr | None = Field(None, description="API key of the teacher LLM.")
    teacher_model: str | None = Field(
        None, description="litellm model name of the teacher LLM; set: it is the judge."
    )
    teacher_base_url: str | None = Field(None, description="Base URL of the teacher LLM's API.")
    llm_cache: Path = Field(
        DEFAULT_LLM_CACHE, description="SQLite file where replies of LLMs are kept."
    )
    reward_model_url: str | None = Field(
        None, description="Reward-model endpoint, POST {prompt, response} -> {score}."
    )
    reward_scale: Path | None = Field(
        None, description="JSON file that maps the endpoint's raw scores to [0, 1]."
    )
    judge_timeout: float = Field(
        30.0, gt=0, description="Seconds one judge call may take, retries included."
    )

    # The patient of the consultation agent, where it is a model (--patient).
    patient_model: str | None = Field(
        None, description="litellm model name of the patient; served: a model folder."
    )
    patient_base_url: str | None = Field(None, description="Base URL of the patient's API.")
    patient_api_key: SecretStr | None = Field(None, description="API key of the patient.")
    patient_timeout: float = Field(
        30.0, gt=0, description="Seconds one answer may take, retries included."
    )

    # The simulator of the diagnosis agent, where it is a model (--simulator).
    simulator_model: str | None = Field(
        None, description="Name the simulator's model is served by; served: a folder."
    )
    simulator_base_url: str | None = Field(
        None, description="Base URLs of the simulator's API, joined by commas."
    )
    simulator_api_key: SecretStr | None = Field(None, description="API key of the simulator.")
    simulator_timeout: float = Field(
        60.0, gt=0, description="Seconds one result may take, retries included."
    )
    simulator_temperature: float = Field(
        1.0, ge=0, le=2, description="Its sampling temperature in training."
    )
    simulator_eval_temperature: float = Field(
        0.0, ge=0, le=2, description="Its temperature in an evaluation."
    )

    # What an episode earns, and what watches over the judge.
    reward_terms: str = Field(
        "rule=0.1,judge=1.0*format", description="Terms of the reward, their weights, factors."
    )
    max_unscored_share: float = Field(
        0.3, ge=0, le=1, description="Share of unscored rollouts that skips a step."
    )
    canary_share: float = Field(
        0.25, ge=0, le=1, description="Share of episodes that judge a known-bad answer too."
    )
    judge_check: bool = Field(
        True, description="0: train although the judge cannot tell honest answers from others."
    )
    second_judge_model: str | None = Field(
        None, description="litellm model name of a second judge, for agreement."
    )
    second_judge_api_key: SecretStr | None = Field(None, description="API key of the second judge.")
    second_judge_base_url: str | None = Field(
        None, description="Base URL of the second judge's API."
    )
    second_judge_share: float = Field(
        0.05, ge=0, le=1, description="Share of answers the second judge sees too."
    )

    # The endpoint that sqlagent_test and evaluation ask when no flag names one.
    openai_base_url: str | None = Field(
        None, description="OpenAI's protocol, such as http://127.0.0.1:8000/v1."
    )
    openai_api_key: SecretStr | None = Field(None, description="API key sent to that endpoint.")

    # agent-lightning's store and roles.
    agl_managed_store: bool = Field(
        True, description="1: start a store here; 0: use --external-store-address."
    )
    agl_current_role: Literal["algorithm", "runner", "both"] = Field(
        "both", description="What this process does."
    )
    agl_server_host: str = Field("127.0.0.1", description="Where a managed store listens.")
    agl_token: SecretStr | None = Field(
        None, description="What requests must carry to store, proxy and served agent."
    )
    agl_server_port: int = Field(4747, ge=1, le=65535, description="Port of a managed store.")

    # The LLM proxy: where it listens, and the host name that runners get.
    llm_proxy_host: str = Field(
        "127.0.0.1", description="IPv4 address on which the LLM proxy listens."
    )
    llm_proxy_port: int = Field(
        0, ge=0, le=65535, description="Port of the LLM proxy; 0 picks a free one."
    )
    llm_proxy_public_host: str | None = Field(
        None, description="Host name runners use to reach the proxy."
    )

    # Experiment trackers: each is used when its variable is set.
    tensorboard_dir: str | None = Field(
        None, description="Turns TensorBoard on: the folder it writes into."
    )
    swanlab_api_key: SecretStr | None = Field(None, description="Turns the SwanLab logger on.")
    swanlab_mode: str | None = Field(
        None, description="SwanLab mode: cloud, local, offline, disabled."
    )
    swanlab_log_dir: str | None = Field(None, description="Where SwanLab keeps its files.")
    wandb_api_key: SecretStr | None = Field(
        None, description="Turns the Weights & Biases logger on."
    )
    wandb_mode: str | None = Field(
        None, description="Weights & Biases mode: online, offline, disabled."
    )
    wandb_base_url: str | None = Field(
        None, description="Address of a self-hosted Weights & Biases server."
    )

    @property
    def tables(self) -> list[str]:
        """The tables the agent may read, lower-case, in the order they are given."""
        return [name for name in map(str.strip, self.database_tables.lower().split(",")) if name]

    def under(self, flags: Mapping[str, Any]) -> Settings:
        """Return these settings, overridden by the given flags that bear a setting's name."""
        given = {
            name: value
            for name, value in flags.items()
            if name in Settings.model_fields and value is not None
        }
        return self.model_copy(update=given)

    @field_validator("*", mode="before")
    @classmethod
    def _is_decoded(cls, value: object) -> object:
        if isinstance(value, str) and undecoded(value):
            raise ValueError("not in the locale's encoding; if it names a file, rename that")
        return value

    @field_validator("agl_token")
    @classmethod
    def _fits_a_header(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not re.fullmatch("[!-~]+", value.get_secret_value()):
            raise ValueError("expected ASCII characters without spaces")
        return value

    @field_validator("reward_scale", "llm_cache")
    @classmethod
    def _from_the_root(cls, value: Path | None) -> Path | None:
        return value if value is None else ROOT / value  # an absolute path stays what it is


@lru_cache(maxsize=1)
def load_settings() -> Settings:
    """Read the settings once per process.

    Raises SettingsError that names every wrong variable and its problem.
    """
    try:
        return Settings()
    except ValidationError as error:
        raise SettingsError("; ".join(_explain(problem) for problem in error.errors())) from None


def _explain(problem: ErrorDetails) -> str:
    name = str(problem["loc"][0]).upper() if problem["loc"] else "settings"
    secret = name.endswith(("KEY", "TOKEN", "URL"))
    seen = "" if secret else f" is {problem['input']!r}"
    return f"{name}{seen}: {problem['msg']}"
