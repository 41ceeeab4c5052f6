"""Nobody's file is run in a module's place: keeps what common/__init__.py says of where modules are
found.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import common
from common.settings import ROOT


@pytest.mark.parametrize("room", ["common", "training"])
def test_a_file_two_folders_above_is_not_imported(room, tmp_path: Path) -> None:
    work = tmp_path / "home" / "project"
    work.mkdir(parents=True)
    (tmp_path / "h2.py").write_text("raise SystemExit('a file of a stranger was run')")
    code = f"import sys, {room}, agentlightning, litellm.proxy.proxy_server, importlib.util as u; print(u.find_spec('h2'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=work,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "h2.py") not in done.stdout


def test_others_may_insert() -> None:
    path = common.SearchPath(["b"])
    path.insert(0, "a")
    assert path == ["a", "b"]
