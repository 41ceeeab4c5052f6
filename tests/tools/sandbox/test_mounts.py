"""What a sandbox is shown of this machine, read off the command line that starts it; nothing is
started.

Keeps of docs/safety.md, "What holds, and by what": read-only, nothing but what is listed, no
variable of this process.
"""

import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.messages import missing
from tools.sandbox import mounts
from tools.sandbox.errors import SandboxError

TWO_WORDS = {"--ro-bind", "--ro-bind-try", "--dev-bind", "--symlink", "--setenv"}
ONE_WORD = {"--dir", "--proc", "--remount-ro", "--hostname", "--cap-add"}


def told(line: list[str]) -> tuple[list[tuple[str, ...]], list[str]]:
    """bubblewrap's options with their words, in order, and the command after them."""
    end = line.index("--")
    words, options = iter(line[1:end]), []
    for name in words:
        count = 2 if name in TWO_WORDS else 1 if name in ONE_WORD else 0
        options.append((name, *(next(words) for _ in range(count))))
    return options, line[end + 1 :]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[str, ...]], list[str]]:
    monkeypatch.setattr(shutil, "which", {"bwrap": "/usr/bin/bwrap"}.get)
    line, environment = mounts.protected({Path("/here/tables"): "/data/tables"})
    assert (line[0], environment) == ("/usr/bin/bwrap", {})
    return told(line)


def test_it_is_apart_in_every_way_before_anything_is_shown(shown) -> None:
    options, _ = shown
    wanted = ["--unshare-all", "--unshare-user", "--as-pid-1", "--new-session", "--clearenv"]
    assert [option[0] for option in options if len(option) == 1] == wanted
    variables = {words[0]: words[1] for name, *words in options if name == "--setenv"}
    assert variables == mounts.ENVIRONMENT


def test_it_sees_the_system_the_interpreter_its_packages_and_the_data_read_only(shown) -> None:
    """A folder bound otherwise could be written, and what is not listed would be read."""
    options, _ = shown
    bound = {words[1]: (name, words[0]) for name, *words in options if name.startswith("--ro-bind")}
    base = Path(sys.base_prefix)
    wanted = {place: ("--ro-bind-try", place) for place in mounts.SYSTEM}
    wanted |= {
        "/python/bin": ("--ro-bind", str(base / "bin")),
        "/python/lib": ("--ro-bind", str(base / "lib")),
    }
    wanted |= {
        "/packages": ("--ro-bind", sysconfig.get_path("platlib")),
        "/data/tables": ("--ro-bind", "/here/tables"),
    }
    wanted |= {
        folder: ("--ro-bind", folder)
        for folder in ("/bin", "/lib", "/lib64")
        if not Path(folder).is_symlink()
    }
    assert bound == wanted
    assert [words for name, *words in options if name == "--dev-bind"] == [
        [one, one] for one in mounts.DEVICES
    ]
    assert [words for name, *words in options if name == "--dir"] == [["/dev/shm"], ["/scratch"]]
    assert ("--proc", "/proc") in options
    assert options[-1] == ("--remount-ro", "/"), "last: what comes after could be written"


def test_without_bubblewrap_nothing_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SandboxError) as caught:
        mounts.protected({})
    said = str(caught.value)
    assert not missing(said, "apt-get install bubblewrap", "SANDBOX=process")


def test_data_is_named_by_its_last_part_and_must_be_there(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder / "tables").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "tables")
    paths = mounts.data_paths([tmp_path / "link", str(tmp_path / "a" / "tables"), tmp_path / "b"])
    assert paths == {
        (tmp_path / "a" / "tables").resolve(): "/data/tables",
        (tmp_path / "b").resolve(): "/data/b",
    }
    with pytest.raises(SandboxError, match=str(tmp_path / "c")):
        mounts.data_paths([tmp_path / "c"])
    both = [tmp_path / folder / "tables" for folder in ("a", "b")]
    with pytest.raises(SandboxError, match=rf"{both[0]}, {both[1]}"):
        mounts.data_paths(both)
