"""The settings of the code agent. Those of its sandbox are in tools/sandbox/settings.py."""

from tools.sandbox.settings import SandboxSettings


class CodeSettings(SandboxSettings):
    """The server that tasks ask."""

    fhir_base_url: str = "http://localhost:8080/fhir/"
