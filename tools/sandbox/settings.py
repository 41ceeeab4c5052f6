"""The settings of the sandbox."""

from typing import Literal

from pydantic import Field

from common.settings import Settings


class SandboxSettings(Settings):
    """Where programs of the model run, and what they may take."""

    sandbox: Literal["bubblewrap", "process"] = "bubblewrap"  # process: unprotected
    sandbox_seconds: float = Field(10.0, gt=0, le=3600)  # of a program
    sandbox_memory: float = Field(1.0, gt=0, le=1024)  # GiB, of an episode's programs
