"""The settings of the consultation agent."""

from pydantic import Field, SecretStr

from common.settings import Settings


class ConsultationSettings(Settings):
    """The patient, where it is a model (--patient)."""

    patient_model: str | None = None
    patient_base_url: str | None = None
    patient_api_key: SecretStr | None = None
    patient_timeout: float = Field(30.0, gt=0)
