"""The errors of the sandbox."""

from common.command import UsageError


class SandboxError(UsageError):
    """The sandbox cannot run here, or not with these arguments. The message says what to do."""


class MachineTooSlowError(SandboxError):
    """The machine held a program up for three times its deadline, so the program is not judged."""
