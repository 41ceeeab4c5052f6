"""Change the code that decides what is trained and paid, a little at a time, and print what no test
noticed.

    make mutants                   the rooms of rooms.toml and the named changes, one after the other
    make mutants ROOM=sequences    one room: mutmut's changes, in a copy below outputs/mutants/
    make mutants ROOM=named        the changes of changes.toml, each of which its test must notice

Exit codes: 0 done, 1 a named change was not noticed or a room's tests fail unchanged, 2 wrong
usage.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from common.command import Failure, UsageError, run_command
from common.settings import ROOT

HERE = Path(__file__).parent
NAMED = "named"
MUTMUT = str(Path(sys.executable).with_name("mutmut"))
NOTICED = ("killed", "timeout", "segfault")
TESTS_FAILED = 1  # pytest's exit code. Any other says that the test could not be run
# Statements that are the wording of a message, and declarations of a command's options.
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
    -n0
    -m
    not engine and not nightly and not system
    --timeout={seconds}
    --hypothesis-profile=mutants
timeout_multiplier=2.0
timeout_constant=5.0
use_git_change_detection=false
"""


def rooms() -> dict[str, dict[str, Any]]:
    return tomllib.loads((HERE / "rooms.toml").read_text(encoding="utf-8"))


def named_changes() -> list[dict[str, str]]:
    text = (HERE / "changes.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["change"])


def copy_repository(room: str) -> tuple[Path, list[str]]:
    folder = ROOT / "outputs" / "mutants" / room
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder, names


def run_room(room: str, parts: dict[str, Any]) -> None:
    """Let mutmut change the room's files, print what was not noticed, and one line of JSON."""
    folder, names = copy_repository(room)
    packages = sorted({name.split("/")[0] for name in parts["files"]})
    others = sorted({name.split("/")[0] for name in names} - {*packages, "tests", "pyproject.toml"})
    lists = {
        "packages": packages,
        "files": parts["files"],
        "others": others,
        "wording": WORDING,
        "tests": [f"tests/{name}" for name in parts["tests"]],
    }
    lines = {name: "\n".join(f"    {line}" for line in part) for name, part in lists.items()}
    setup = SETUP.format(**lines, seconds=parts.get("seconds", 60))
    (folder / "setup.cfg").write_text(setup, encoding="utf-8")
    program = (HERE / "mutmut_run.py").read_text(encoding="utf-8")
    at_once = str(parts.get("at_once", 2))
    if subprocess.run([sys.executable, "-c", program, at_once], cwd=folder).returncode:
        raise Failure(f"mutmut cannot run the tests of {room}, as its output above says; mend them")
    results = read_mutmut(folder, "results", "--all", "true")
    states = dict(line.strip().split(": ") for line in results.splitlines() if ": " in line)
    unnoticed = [name for name, state in states.items() if state not in NOTICED]
    for name in unnoticed:
        print(read_mutmut(folder, "show", name))
    print(json.dumps({"room": room, "changes": len(states)} | Counter(states.values())))


def read_mutmut(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [MUTMUT, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def run_named() -> None:
    folder, _ = copy_repository(NAMED)
    found = Counter[str]()
    for change in named_changes():
        answer = try_change(folder, change)
        found[answer] += 1
        print(f"{answer}: {change['what']} ({change['file']}, {change['test']})", flush=True)
    print(json.dumps({"room": NAMED} | found))
    if found["NOT NOTICED"] or found["NO ANSWER"]:
        raise Failure("a named change was not noticed, as said above; write a test")


def try_change(folder: Path, change: dict[str, str]) -> str:
    """Return whether a test notices its change. A change whose place has gone is skipped."""
    file = folder / change["file"]
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if text.count(change["old"]) != 1:
        return "skipped, its place is gone"
    file.write_text(text.replace(change["old"], change["new"]), encoding="utf-8")
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-n0", "-m", "not nightly"]
    command += ["-p", "no:cacheprovider", "--timeout=120", f"tests/{change['test']}"]
    tested = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL)
    file.write_text(text, encoding="utf-8")
    return {TESTS_FAILED: "noticed", 0: "NOT NOTICED"}.get(tested.returncode, "NO ANSWER")


def main(arguments: list[str]) -> int:
    def body() -> None:
        known = rooms()
        chosen = arguments or [*known, NAMED]
        unknown = [room for room in chosen if room not in known and room != NAMED]
        if unknown:
            raise UsageError(
                f"there is no room {', '.join(unknown)}; the rooms are {', '.join(known)}, {NAMED}"
            )
        for room in chosen:
            if room == NAMED:
                run_named()
            else:
                run_room(room, known[room])

    return run_command("mutants", body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
