"""Do the faults of faults.toml to real runs, measure what follows, and write bench/faults.md.

    make faults                              all of them: about an hour
    make faults SCENE=path                   those of one run
    .venv/bin/python -m bench.faults --only "vLLM"     those whose names have this pattern
    .venv/bin/python -m bench.faults --page            the page alone, from what was measured before (measured.json)

Exit codes: 0 every fault did what its row expects and left nothing running, untrained or trained
twice, 1 one did not.
"""

import json
import re
import signal
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.faults.measure import play, right
from bench.faults.page import page
from bench.faults.scenes import LINES, SCENES, Scene
from common.command import UsageError, new_parser, run_command
from common.jsonl import write_text
from common.settings import ROOT

FAULTS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("faults.toml").read_text("utf-8")
)["fault"]
MEASURED = Path(__file__).with_name("measured.json")
PAGE = ROOT / "bench" / "faults.md"


def measured() -> dict[str, dict[str, Any]]:
    return dict(json.loads(MEASURED.read_text(encoding="utf-8"))) if MEASURED.exists() else {}


def keep(result: dict[str, Any]) -> None:
    write_text(
        MEASURED,
        json.dumps(measured() | {result["name"]: result}, ensure_ascii=False, indent=1),
        force=True,
    )
    print(json.dumps(result, ensure_ascii=False), flush=True)


def play_scene(
    name: str, faults: list[dict[str, Any]], folder: Path, note: Callable[[dict[str, Any]], None]
) -> list[dict[str, Any]]:
    """Do these faults to one run, one after the other. If one ends the run, resume it."""
    scene: Scene = SCENES[name](folder)
    results: list[dict[str, Any]] = []
    try:
        for fault in faults:
            _resume(scene, results, note)
            results.append(play(scene, fault))
            note(results[-1])
        _resume(scene, results, note)
    finally:
        left = scene.close()
    if results:
        results[-1]["left"] += left
        note(results[-1])
    return results


def _resume(
    scene: Scene, results: list[dict[str, Any]], note: Callable[[dict[str, Any]], None]
) -> None:
    """Resume. How long the same command takes to go on belongs to the fault that ended the run."""
    seconds = scene.ready()
    if results and results[-1]["code"] is not None:
        results[-1]["resumed"] = round(seconds)
        note(results[-1])


def main() -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--scene", choices=SCENES, help="only the faults of this run")
    parser.add_argument(
        "--only", metavar="PATTERN", default="", help="only faults whose names have this pattern"
    )
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options = parser.parse_args()
    for stop in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # a shell's background makes the harness and its runs deaf to Ctrl-C
        signal.signal(stop, signal.default_int_handler)

    def body() -> int:
        chosen = (
            []
            if options.page
            else [fault for fault in FAULTS if re.search(options.only, fault["name"])]
        )
        if not chosen and not options.page:
            names = ", ".join(fault["name"] for fault in FAULTS)
            raise UsageError(f"--only {options.only!r} names no fault; the faults are: {names}")
        results = []
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            for scene in [options.scene] if options.scene else SCENES:
                if faults := [fault for fault in chosen if fault["scene"] == scene]:
                    results += play_scene(scene, faults, Path(folder) / scene, keep)
        print(f"all lines of the runs are in {LINES.name}")
        write_text(PAGE, page(FAULTS, measured()), force=True)
        print(
            f"{sum(map(right, results))} of {len(results)} faults did what is expected; see {PAGE.relative_to(ROOT)}"
        )
        return 0 if all(map(right, results)) else 1

    return run_command("faults", body)


if __name__ == "__main__":
    sys.exit(main())
