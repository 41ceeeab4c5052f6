"""The settings of the consultation agent."""

from __future__ import annotations

from pydantic import Field, SecretStr

from common.settings import Settings


class ConsultationSettings(Settings):
    """The patient, where it is a model (--patient)."""

    patient_model: str | None = Field(
        None, description="litellm model name of the patient; served: a model folder."
    )
    patient_base_url: str | None = Field(None, description="Base URL of the patient's API.")
    patient_api_key: SecretStr | None = Field(None, description="API key of the patient.")
    patient_timeout: float = Field(
        30.0, gt=0, description="Seconds one answer may take, retries included."
    )
