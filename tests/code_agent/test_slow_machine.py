"""What the machine held up is no failure of the sandbox and none of the policy."""

from __future__ import annotations

import pytest

from code_agent.actions import EpisodeContext, run_in
from code_agent.debugger import Debugger
from episodes.outcomes import EpisodeError
from tools.sandbox import MachineTooSlowError, Sandbox, SandboxError


@pytest.mark.parametrize(
    ("error", "cause"),
    [(MachineTooSlowError, "machine_too_slow"), (SandboxError, "sandbox_failed")],
)
async def test_an_episode_is_unscored_by_its_cause(
    error: type[SandboxError], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(*arguments: object) -> None:
        raise error("as it was seen")

    monkeypatch.setattr(Sandbox, "run", run)
    context = EpisodeContext(Sandbox(), "a", lambda *asked: "", Debugger(None))
    with pytest.raises(EpisodeError, match="as it was seen") as caught:
        await run_in(context, "print(1)")
    assert caught.value.cause == cause
