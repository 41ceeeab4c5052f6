"""Where programs that a model wrote are run: docs/safety.md."""

from tools.sandbox.errors import MachineTooSlowError, SandboxError
from tools.sandbox.sandbox import Run, Sandbox, probe

__all__ = ["MachineTooSlowError", "Run", "Sandbox", "SandboxError", "probe"]
