"""Checks whether this machine has a sandbox. Runs and utils/check_install.py do so first."""

from tools.sandbox.sandbox import Sandbox


async def probe() -> None:
    """Run one program. Raises SandboxError if this machine has no sandbox."""
    sandbox = Sandbox()
    try:
        await sandbox.run("print(1)", "probe")
    finally:
        await sandbox.close()
