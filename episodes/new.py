"""Write the skeleton of a new agent: a folder that plays, passes conformance and trains.

    .venv/bin/python -m episodes.new triage                    # triage_agent/, with a tool
    .venv/bin/python -m episodes.new triage --kind partner     # with a partner who answers in words
    .venv/bin/python -m episodes.new triage --out ~/agents     # ~/agents/triage_agent/

docs/agents.md says how to go on. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template

from common.command import UsageError, as_typed, new_parser, run_command
from episodes import registry

SKELETONS = Path(__file__).with_name("skeletons")
KINDS = ("tool", "partner")
NAME = re.compile(r"[a-z][a-z0-9_]*")

NEXT = """{folder} is written. {path}Then:
  .venv/bin/python -m evaluation.evaluate {name} --gold     # 100
  .venv/bin/python -m pytest -p episodes.conformance --agent {name}
  .venv/bin/python -m training.cold_start {name}            # makes {name}_agent/tiny_model
  .venv/bin/python -m training.launch {name} --ci-fast      # trains it for one step"""


def write_agent(name: str, kind: str, out: Path) -> Path:
    """Write the folder `<name>_agent` into `out` and return it.

    Raises UsageError: the name cannot be a module's, or is taken, or the folder exists.
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"the name is {name!r}; expected lower-case letters, digits and _, as in triage"
        )
    folder = out / f"{name}_agent"
    if folder.exists():
        raise UsageError(f"{folder} exists; choose another name or --out, or move it away")
    if name in registry.names():
        raise UsageError(f"there is an agent {name!r} already; choose another name")
    values = {"name": name, "Name": "".join(part.capitalize() for part in name.split("_"))}
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    text = (SKELETONS / f"{kind}.py.txt").read_text(encoding="utf-8")
    (folder / "agent.py").write_text(Template(text).substitute(values), encoding="utf-8")
    runpy.run_path(str(folder / "agent.py"), run_name="__main__")  # it draws its own data
    return folder


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("name", help="as commands will know it")
    parser.add_argument("--kind", choices=KINDS, default="tool", help="default: tool")
    parser.add_argument("--out", type=Path, default=Path(), help="default: this folder")
    arguments = parser.parse_args(argv)

    def body() -> None:
        folder = write_agent(arguments.name, arguments.kind, arguments.out)
        parent = str(folder.resolve().parent)
        path = f"Put its parent on the path: export PYTHONPATH={parent}\n"
        path = "" if parent in sys.path else path
        print(as_typed(NEXT.format(folder=folder, name=arguments.name, path=path)))

    return run_command("new", body)


if __name__ == "__main__":
    sys.exit(main())
