"""The operator's scripts."""

from common.command import Failure


class Doubt(Failure):
    """Something that only some runs need is wrong (utils.check_install)."""
