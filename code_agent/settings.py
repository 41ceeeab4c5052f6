"""The settings of the code agent. The sandbox has its own."""

from pydantic import Field

from tools.sandbox.settings import SandboxSettings


class CodeSettings(SandboxSettings):
    """The server that tasks ask."""

    fhir_base_url: str = Field(
        "http://localhost:8080/fhir/", description="FHIR server that medagentbench asks."
    )
