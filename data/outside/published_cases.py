"""What a file of EHRSQL that cannot be read raises."""

from __future__ import annotations

from common.command import UsageError


class PublishedError(UsageError):
    """A file of a public test set that cannot be read as one."""
