"""The settings of the diagnosis agent."""

from pydantic import Field, SecretStr

from common.settings import Settings


class DiagnosisSettings(Settings):
    """The simulator, where it is a model (--simulator)."""

    simulator_model: str | None = None
    simulator_base_url: str | None = None
    simulator_api_key: SecretStr | None = None
    simulator_timeout: float = Field(60.0, gt=0)
