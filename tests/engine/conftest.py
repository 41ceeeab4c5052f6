"""What tests of the engine share beside `tests/runs.py`.

A commit's CI has five trainings: the SQL agent's `--ci-fast`, one of an agent of words, a resumed
one, one of three processes, and one whose runner is killed. Every other training is `nightly`.
"""

import pytest


@pytest.fixture(scope="session")
def smoke(fast_run):
    """The SQL agent's `--ci-fast`."""
    return fast_run("sql")
