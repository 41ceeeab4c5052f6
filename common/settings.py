"""The settings that commands read from the environment, else from `.env` in the repository root.

load_settings().of(SqlSettings).database_url     # what belongs to one agent or tool: `settings.py` of its folder
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from common.command import UsageError, undecoded

ROOT = Path(__file__).resolve().parent.parent
# Where runs, results and .env lie: the repository, or for an installed package the current folder
WORK = ROOT if (ROOT / "install.sh").is_file() else Path.cwd()
DEFAULT_LLM_CACHE = WORK / "outputs" / "llm_cache.sqlite"


def below_root(path: Path | str) -> str:
    """Return a path of the repository relative to it, and any other unchanged."""
    return str(Path(path).relative_to(WORK)) if Path(path).is_relative_to(WORK) else str(path)


Own = TypeVar("Own", bound="Settings")


class SettingsError(UsageError):
    """A setting cannot be used. The message names the setting, the problem and the fix."""


class Settings(BaseSettings):
    """Typed settings. The variable's name is the field's name in capitals."""

    model_config = SettingsConfigDict(
        env_file=WORK / ".env", env_file_encoding="utf-8", extra="ignore", env_ignore_empty=True
    )

    # How the agent plays and samples.
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
        600.0, gt=0, description="Seconds one episode may take, judge included."
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

    # What watches over episodes and the judge.
    max_unscored_share: float = Field(
        0.3, ge=0, le=1, description="Share of unscored rollouts that skips a step."
    )
    canary_share: float = Field(
        0.25, ge=0, le=1, description="Share of episodes that judge a known-bad answer too."
    )
    judge_check: bool = Field(
        True, description="0: train although the judge cannot tell honest answers from others."
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

    def under(self, flags: Mapping[str, Any]) -> Self:
        """Return these settings, overridden by the given flags that bear a setting's name."""
        given = {}
        for name, value in flags.items():
            if name in type(self).model_fields and value is not None:
                given[name] = value
        return self.model_copy(update=given)

    def of(self, kind: type[Own]) -> Own:
        """Return these settings together with an agent's or a tool's own."""
        if isinstance(self, kind):
            return self
        given = {name: getattr(self, name) for name in self.model_fields_set & {*kind.model_fields}}
        return cast("Own", load_settings(kind)).model_copy(update=given)

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
        return value if value is None else WORK / value  # an absolute path stays what it is


@lru_cache
def load_settings(kind: type[Settings] = Settings) -> Settings:
    """Read the settings once per process. Raises SettingsError that names every wrong variable."""
    try:
        return kind()
    except ValidationError as error:
        raise SettingsError("; ".join(_explain(problem) for problem in error.errors())) from None


def _explain(problem: ErrorDetails) -> str:
    name = str(problem["loc"][0]).upper() if problem["loc"] else "settings"
    secret = name.endswith(("KEY", "TOKEN", "URL"))
    seen = "" if secret else f" is {problem['input']!r}"
    return f"{name}{seen}: {problem['msg']}"
