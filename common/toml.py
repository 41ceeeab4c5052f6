"""Read a table of words or numbers from the TOML file beside a module."""

import tomllib
from pathlib import Path
from typing import Any


def table_beside(module: str, name: str = "") -> dict[str, Any]:
    """Return the table beside a module's file: of the module's own name, or a file called `name`."""
    path = Path(module).parent / name if name else Path(module).with_suffix(".toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))
