"""The engine room: agent-lightning rollouts inside verl's trainer. Knows no agent's words."""

import common  # noqa: F401  # before agent-lightning: it guards the path that modules are found on
