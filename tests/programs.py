"""Programs that a test runs to their end."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from common.settings import ROOT

Ended = subprocess.CompletedProcess[str]


def ran(*command: object, cwd: Path = ROOT, **options: Any) -> Ended:
    """Run a command in the repository; return its exit code and what it printed."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, **options)


def python(*arguments: object, **options: Any) -> Ended:
    """Run Python itself with these arguments."""
    return ran(sys.executable, *arguments, **options)
