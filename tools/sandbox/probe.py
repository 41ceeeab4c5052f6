"""Whether this machine has a sandbox: asked before a run, and by utils/check_install.py."""

from tools.sandbox.sandbox import Sandbox


async def probe() -> None:
    """Run one program. Raises SandboxError: this machine has no sandbox."""
    sandbox = Sandbox()
    try:
        await sandbox.run("print(1)", "probe")
    finally:
        await sandbox.close()
