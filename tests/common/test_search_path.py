"""Nobody's file is run in a module's place, as common/__init__.py promises."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.programs import python

pytestmark = pytest.mark.system
NAME = "litellm.proxy.proxy_server"


def found_below(folder: Path, code: str) -> str:
    """Run `code` two folders below `folder`; return where that program finds the module `h2`."""
    work = folder / "home" / "project"
    work.mkdir(parents=True)
    (folder / "h2.py").write_text("raise SystemExit('a file of a stranger was run')")
    program = f"{code}\nfrom importlib import util; print(util.find_spec('h2'))"
    done = python("-c", program, cwd=work, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("room", ["common", "training"])
def test_a_file_two_folders_above_is_not_found(room, tmp_path):
    """litellm's own lines are run under its name, without the minute that its import takes."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).parent / "proxy" / "proxy_server.py"
    lines = source.read_text(encoding="utf-8").splitlines()
    inserts = "\n".join(line for line in lines if line.startswith("sys.path.insert("))
    assert inserts, f"{source} inserts nothing any more: common/__init__.py has no use"
    run = f"import os, sys; exec({inserts!r}, {{'__name__': {NAME!r}, 'os': os, 'sys': sys}})"
    assert str(tmp_path / "h2.py") not in found_below(tmp_path, f"import {room}\n{run}")
    assert str(tmp_path / "unguarded" / "h2.py") in found_below(tmp_path / "unguarded", run)


@pytest.mark.nightly  # the imports take most of a minute
def test_a_file_two_folders_above_is_not_imported(tmp_path):
    """What else agent-lightning and litellm import inserts nothing, either."""
    imports = f"import common, agentlightning, {NAME}"
    assert str(tmp_path / "h2.py") not in found_below(tmp_path, imports)
