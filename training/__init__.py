"""The engine room: agent-lightning rollouts inside verl's trainer. It knows no agent by name."""

import common  # noqa: F401  # before agent-lightning: it guards the path that modules are found on
