"""Models that an agent's environment talks to (a partner, a simulator), served for the length of a run.

with serving(agent, settings, options, folder=run_dir / "logs") as options:      # options with the addresses
    agent.open(settings, options)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.settings import Settings
from episodes.agent import Agent, Options
from training.serve import serve


@contextlib.contextmanager
def serving(
    agent: Agent, settings: Settings, options: Options, folder: Path, device: str | None = "auto"
) -> Iterator[dict[str, Any]]:
    """Serve what the agent asks for, one log file a model in `folder`; all are ended with the body.

    device: `auto`, `cpu` or `cuda`; None: episodes are played elsewhere, nothing is served.

    Raises:
        ConfigError: a model that cannot be served.
        ServeError: a server did not start.
    """
    wanted = agent.services(settings, options) if device else ()
    with contextlib.ExitStack() as stack:
        addresses = {
            service.option: stack.enter_context(
                serve(service.model, folder / f"{service.option}.log", str(device), tools=False)
            ).base_url
            for service in wanted
        }
        yield {**options, **addresses}
