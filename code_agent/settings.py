"""The settings of the code agent. The sandbox has its own."""

from tools.sandbox.settings import SandboxSettings


class CodeSettings(SandboxSettings):
    """The server that tasks ask."""

    fhir_base_url: str = "http://localhost:8080/fhir/"
