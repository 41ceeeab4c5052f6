"""The settings that commands read from the environment, else from `.env` in the repository root.
Those of one agent or tool stand in `settings.py` of its folder.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from common.command import UsageError, undecoded

ROOT = Path(__file__).resolve().parent.parent
# Where runs, results and .env lie: the repository, or for an installed package the current folder
WORK = ROOT if (ROOT / "install.sh").is_file() else Path.cwd()


def below_root(path: Path | str) -> str:
    """Return a path of the repository relative to it, and any other unchanged."""
    return str(Path(path).relative_to(WORK)) if Path(path).is_relative_to(WORK) else str(path)


Own = TypeVar("Own", bound="Settings")


class SettingsError(UsageError):
    """A setting cannot be used. The message names the setting, the problem and the fix."""


class Settings(BaseSettings):
    """Typed settings: docs/settings.md says what each means. Variables are names in capitals."""

    model_config = SettingsConfigDict(
        env_file=WORK / ".env",
        env_file_encoding="utf-8",
        extra="ignore",
        env_ignore_empty=True,
        allow_inf_nan=False,
    )

    # How the agent plays and samples
    max_turns: int = Field(3, ge=1, le=64)  # unset: the agent's own
    min_turns: int | None = Field(None, ge=1, le=64)  # set: budgets are drawn by task, from this on
    turns_seed: int = 0
    max_tokens: int | None = Field(None, ge=1)
    temperature: float = Field(1.0, gt=0, le=2)
    episode_timeout: float = Field(600.0, gt=0)

    # The model that is trained, when no --model is given
    base_model: str | None = None

    # Judges: the teacher LLM, else the reward-model endpoint, else the offline reference judge,
    # which pays what is quoted; other words need TEACHER_MODEL
    teacher_api_key: SecretStr | None = None
    teacher_model: str | None = None
    teacher_base_url: str | None = None
    llm_cache: Path = WORK / "outputs" / "llm_cache.sqlite"
    reward_model_url: str | None = None
    reward_scale: Path | None = None
    judge_timeout: float = Field(30.0, gt=0)

    # What watches over episodes and the judge
    max_unscored_share: float = Field(0.3, ge=0, le=1)
    canary_share: float = Field(0.25, ge=0, le=1)
    judge_check: bool = True

    # The endpoint that sqlagent_test and evaluation ask when no flag names one
    openai_base_url: str | None = None
    openai_api_key: SecretStr | None = None

    # agent-lightning's store and roles
    agl_managed_store: bool = True
    agl_current_role: Literal["algorithm", "runner", "both"] = "both"
    agl_server_host: str = "127.0.0.1"
    agl_token: SecretStr | None = None
    agl_server_port: int = Field(4747, ge=1, le=65535)

    # The LLM proxy: where it listens, and the host name that runners get
    llm_proxy_host: str = "127.0.0.1"
    llm_proxy_port: int = Field(0, ge=0, le=65535)  # 0: a free one
    llm_proxy_public_host: str | None = None

    # Experiment trackers: TENSORBOARD_DIR, or the key of another, turns it on
    tensorboard_dir: str | None = None
    swanlab_api_key: SecretStr | None = None
    swanlab_mode: str | None = None
    swanlab_log_dir: str | None = None
    wandb_api_key: SecretStr | None = None
    wandb_mode: str | None = None
    wandb_base_url: str | None = None

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
        if not isinstance(value, str):
            return value
        if undecoded(value):
            raise ValueError("not in the locale's encoding; if it names a file, rename that")
        return value.strip() or value  # a copied key has a line break

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


def reveal(secret: SecretStr | None) -> str | None:
    """Return the text of a secret setting, or None if it is not set."""
    return secret.get_secret_value() if secret else None


@lru_cache
def load_settings(kind: type[Settings] = Settings) -> Settings:
    """Read the settings once per process. Raises SettingsError that names every wrong variable."""
    try:
        return kind()
    except ValidationError as error:
        told = []
        for problem in error.errors():
            name = str(problem["loc"][0]).upper() if problem["loc"] else "settings"
            secret = name.endswith(("KEY", "TOKEN", "URL"))
            seen = "" if secret else f" is {problem['input']!r}"
            told.append(f"{name}{seen}: {problem['msg']}")
        raise SettingsError("; ".join(told)) from None
