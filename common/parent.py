"""End a process with the one that started it, also after SIGKILL, which runs no handler.

end_with(os.getppid())                   # in a child, from now on
.venv/bin/python -m common.parent PID COMMAND ...  # a command that ends, with its children, when PID does
"""

import os
import signal
import subprocess
import sys
import threading
import time

LOOK_SECONDS = 0.5


def end_with(parent: int, group: bool = False) -> None:
    """Start a thread that ends this process, or its group, once `parent` is no longer its parent."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os.kill(0 if group else os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: None)
    end_with(int(sys.argv[1]), group=True)
    code = subprocess.run(sys.argv[2:], check=False).returncode
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
