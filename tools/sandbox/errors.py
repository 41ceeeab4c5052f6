"""The error of this folder."""

from common.command import UsageError


class SandboxError(UsageError):
    """There is no sandbox here, or not with these arguments; the message says what was seen and
    what to do.
    """


class MachineTooSlowError(SandboxError):
    """A program was held up by the machine, which is shown, until its time and two more of the same
    had gone by: nothing is known of the program.
    """
