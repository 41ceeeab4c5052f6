"""The settings of the diagnosis agent."""

from pydantic import Field, SecretStr

from common.settings import Settings


class DiagnosisSettings(Settings):
    """The simulator, where it is a model (--simulator)."""

    simulator_model: str | None = Field(
        None, description="Name the simulator's model is served by; served: a folder."
    )
    simulator_base_url: str | None = Field(None, description="Base URL of the simulator's API.")
    simulator_api_key: SecretStr | None = Field(None, description="API key of the simulator.")
    simulator_timeout: float = Field(
        60.0, gt=0, description="Seconds one result may take, retries included."
    )
