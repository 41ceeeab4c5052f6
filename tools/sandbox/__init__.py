"""Where programs that a model wrote are run: docs/safety.md."""

from tools.sandbox.errors import MachineTooSlowError, SandboxError
from tools.sandbox.probe import probe
from tools.sandbox.sandbox import Run, Sandbox

__all__ = ["MachineTooSlowError", "Run", "Sandbox", "SandboxError", "probe"]
