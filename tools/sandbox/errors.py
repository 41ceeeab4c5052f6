"""The error of this folder."""

from common.command import UsageError


class SandboxError(UsageError):
    """There is no sandbox here, or not with these arguments; the message says what was seen and
    what to do.
    """
