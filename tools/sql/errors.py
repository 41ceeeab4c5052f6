"""Why a statement has no rows: the database failed, or it refused the statement."""

from common.command import Failure, UsageError


class DatabaseError(Failure):
    """The database cannot be reached or read. Operators see this, never the model."""

    exit_code = UsageError.exit_code


class ConnectionLost(DatabaseError):
    """The connection broke, or the server ended the statement for others. A new one may work."""


class Exhausted(DatabaseError):
    """Memory, disk or patience ran out, which the statement may have caused itself."""


class MachineTooSlow(DatabaseError):
    """Every try failed while the machine was slow or ended the worker, or the database failed."""


class StatementError(ValueError):
    """The database refused the statement or gave up on it. The message is its reason."""


class DeadlineExceeded(StatementError):
    """The statement was stopped because its time was over."""


class SyntaxRefused(StatementError):
    """The database could not read the statement."""


class GuardFault(StatementError):
    """The database read the statement as it was written, but not as the guard wrote it anew."""
