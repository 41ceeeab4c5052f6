"""The settings of the sandbox."""

from typing import Literal

from pydantic import Field

from common.settings import Settings


class SandboxSettings(Settings):
    """Where programs of the model run, and what they may take."""

    sandbox: Literal["bubblewrap", "process"] = Field(
        "bubblewrap", description="process: run programs unprotected."
    )
    sandbox_seconds: float = Field(
        10.0, gt=0, le=3600, description="Seconds that a program of the model may take."
    )
    sandbox_memory: float = Field(
        1.0, gt=0, le=1024, description="GiB of memory that the programs of an episode may have."
    )
