"""Changes the code that decides what is learned, paid and reported, a little at a time, and says
what no test noticed.

    make mutants                       every room of mutants.toml, one after the other, and the corruptions
    make mutants ROOM=metrics          one of them
    make mutants ROOM=corruptions      the named changes of corruptions.toml, each of which must be noticed

mutmut makes the changes and runs the room's unit tests on each, in a copy below outputs/mutants/. A
later run goes on there, with functions that were changed, changes that were not noticed and one in
AGAIN of those that were; without the copy it begins anew. survivors.toml has the changes that may
go unnoticed, each with its reason. Exit codes: 0 done, 1 another change or a corruption is not
noticed, 2 wrong usage.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from random import randrange

import pytest

from common.command import Failure, UsageError, run_command
from common.settings import ROOT

ROOMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CORRUPTIONS = tomllib.loads(
    Path(__file__).with_name("corruptions.toml").read_text(encoding="utf-8")
)["change"]
ACCEPTED = {
    (one["file"], one["old"], one["new"]): one["why"]
    for one in tomllib.loads(
        Path(__file__).with_name("survivors.toml").read_text(encoding="utf-8")
    )["survivor"]
}
NAMED = "corruptions"
# Imported once, for all of them
HEAVY = (
    *("agentlightning", "litellm", "agents", "pandas", "torch", "litellm.proxy.proxy_server"),
    "verl.trainer.ppo.v1.trainer_base",
)
A_TEST_FAILED = 100  # a process that crashes ends with 1, as pytest does
AGAIN = 20  # a test that noticed a change may be gone
NOTICED = ("killed", "timeout", "segfault")
ASKED_AGAIN = (
    0,
    33,
    24,
    -24,
    36,
    152,
    255,
)  # pytest's word: not noticed, not reached, and out of time in each way
MUTMUT = str(Path(sys.executable).with_name("mutmut"))
RUN = Path(__file__).with_name("mutmut_run.py")
# The file and the difference of every name on the command line, without starting Python for each
SHOW = """
import json, sys
from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant
paths = {name: str(find_mutant(name).path) for name in sys.argv[1:]}
print(json.dumps([(path, get_diff_for_mutant(name, path=path)) for name, path in paths.items()]))
"""
# What stands alone on a line or in a log is the wording of a message, of which tests look at how it
# begins; options and names of commands are held by the tests that call these.
WORDING = (
    r'^\s*f?"[^"]*"\)?,?$',
    r"^\s*(logger|log|LOG|logging)\.\w+\(",
    r"^\s*parser(\.add_argument\(| = )",
    r"^\s*return run_command\(",
)
SETUP = """[mutmut]
source_paths=
{packages}
only_mutate=
{files}
also_copy=
{others}
do_not_mutate_patterns=
{wording}
pytest_add_cli_args_test_selection=
{tests}
pytest_add_cli_args=
    -p
    no:cacheprovider
    -m
    not engine and not nightly and not system
    --timeout={seconds}
    --hypothesis-profile=mutants
timeout_multiplier=2.0
timeout_constant=5.0
use_git_change_detection=false
"""


def copy(room: str) -> tuple[Path, list[str]]:
    """A copy of the repository's files as they are, and their names."""
    folder = ROOT / "outputs" / "mutants" / room
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [name for name in tracked.split("\0") if name and (ROOT / name).is_file()]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder, names


def prepare(room: str) -> Path:
    """A copy with mutmut's settings for this room."""
    folder, names = copy(room)
    files = ROOMS[room]["files"]
    packages = sorted({name.split("/")[0] for name in files})
    others = sorted({name.split("/")[0] for name in names} - {*packages, "tests", "pyproject.toml"})
    parts = {"packages": packages, "files": files, "others": others, "wording": WORDING}
    parts["tests"] = [f"tests/{name}" for name in ROOMS[room]["tests"]]
    seconds = ROOMS[room].get("seconds", 60)
    lines = {name: "\n".join(f"    {line}" for line in part) for name, part in parts.items()}
    (folder / "setup.cfg").write_text(SETUP.format(**lines, seconds=seconds), encoding="utf-8")
    return folder


def ask_again(folder: Path) -> None:
    """Forget what was not noticed or not reached, for there may be new tests, what ran out of time
    under a load, and a sample of what was noticed.
    """
    for path in (folder / "mutants").rglob("*.meta"):
        found = json.loads(path.read_text(encoding="utf-8"))
        found["exit_code_by_key"] = {
            name: None if code in ASKED_AGAIN or randrange(AGAIN) == 0 else code
            for name, code in found["exit_code_by_key"].items()
        }
        path.write_text(json.dumps(found), encoding="utf-8")


def run(room: str) -> str:
    """Test one room; its name where a change went unnoticed that is not accepted, or "".

    These are printed as differences, and which accepted ones were noticed.
    """
    folder = prepare(room)
    ask_again(folder)
    program, at_once = RUN.read_text(encoding="utf-8"), str(ROOMS[room].get("at_once", 2))
    if subprocess.run([sys.executable, "-c", program, at_once], cwd=folder).returncode:
        raise Failure(f"mutmut cannot run the tests of {room}, as its output above says; mend them")
    listed = subprocess.run(
        [MUTMUT, "results", "--all", "true"], cwd=folder, capture_output=True, text=True, check=True
    )
    found = dict(line.strip().split(": ") for line in listed.stdout.splitlines() if ": " in line)
    unnoticed = [name for name, state in found.items() if state not in NOTICED]
    shown = subprocess.run(
        [sys.executable, "-c", SHOW, *unnoticed],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    survivors = {survivor_of(path, text): text for path, text in json.loads(shown.stdout)}
    others = [text for survivor, text in survivors.items() if survivor not in ACCEPTED]
    print(*others, sep="\n")
    for file, old, new in ACCEPTED.keys() - survivors.keys():
        if file in ROOMS[room]["files"]:
            print(f"accepted and noticed: {file}: {old} -> {new}")
    print(
        f"{room}: {len(found) - len(unnoticed)} of {len(found)} noticed, {len(unnoticed)} not, of which "
        f"{len(others)} are not accepted; {dict(Counter(found.values()))}"
    )
    return room if others else ""


def survivor_of(file: str, difference: str) -> tuple[str, str, str]:
    """The file, and the lines that a change takes and gives, without their indent."""
    lines = [line for line in difference.splitlines() if line[:3] not in ("---", "+++")]
    old, new = (
        "\n".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return file, old, new


def run_corruptions() -> str:
    """Make each named change and run its tests; what is wrong, or ""."""
    folder, _ = copy(NAMED)
    for name in HEAVY:
        importlib.import_module(name)
    missed = []
    for change in CORRUPTIONS:
        file = folder / change["file"]
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(change["old"], change["new"]), encoding="utf-8")
        tests = multiprocessing.get_context("fork").Process(
            target=run_tests, args=(folder, change["test"])
        )
        tests.start()
        tests.join()
        file.write_text(text, encoding="utf-8")
        found = {A_TEST_FAILED: "noticed", 0: "NOT NOTICED"}.get(
            tests.exitcode, f"NO ANSWER ({change['test']}: exit code {tests.exitcode})"
        )
        print(f"{found}: {change['what']}", flush=True)
        missed += [] if found == "noticed" else [change["what"]]
    print(f"{NAMED}: {len(CORRUPTIONS) - len(missed)} of {len(CORRUPTIONS)} noticed")
    return NAMED if missed else ""


class Seen:
    """Notes whether a test itself failed: one that cannot be imported or set up says nothing of
    what it tests.
    """

    failed = False

    def pytest_exception_interact(self, call: pytest.CallInfo[None]) -> None:
        assert call.excinfo
        broken = issubclass(call.excinfo.type, ImportError | SyntaxError)
        self.failed = self.failed or (call.when == "call" and not broken)


def run_tests(folder: Path, test: str) -> None:
    """In a fork: run a test of this copy, none of whose modules has been imported here. End with
    A_TEST_FAILED, or with pytest's exit code where no test failed by itself.
    """
    own = {path.name for path in folder.iterdir() if path.is_dir()}
    for name in [name for name in sys.modules if name.split(".")[0] in own]:
        del sys.modules[name]
    sys.dont_write_bytecode = (
        True  # of a change, which would be taken for the next one in the same second
    )
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    seen = Seen()
    how = ["-x", "-q", "-p", "no:cacheprovider", "--timeout=120"]
    code = pytest.main([*how, f"tests/{test}"], plugins=[seen])
    os._exit(A_TEST_FAILED if code == pytest.ExitCode.TESTS_FAILED and seen.failed else code)


def main(arguments: list[str]) -> int:
    def body() -> None:
        rooms = [*ROOMS, NAMED]
        if unknown := set(arguments) - set(rooms):
            raise UsageError(
                f"there is no room {', '.join(unknown)}; the rooms are {', '.join(rooms)}"
            )
        if low := [
            room
            for room in arguments or rooms
            if (run_corruptions() if room == NAMED else run(room))
        ]:
            raise Failure(
                f"a change went unnoticed in: {', '.join(low)}; write a test, or accept it in tests/survivors.toml"
            )

    return run_command("mutants", body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
