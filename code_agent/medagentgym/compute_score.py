"""Print what the episodes of a folder scored: success and pass@k.

    .venv/bin/python code_agent/compute_score.py --local_path workdir/ehr_demo/tiny/test

With several episodes of a task (`rollout.py`), success averages each task's share of right
episodes, and pass@k is the chance that one of k is right. Unfinished episodes are counted apart.
Exit codes: 0 done, 2 wrong usage.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from code_agent.medagentgym.histories import NAME, read_all, scores_of
from common.command import UsageError, new_parser, run_command


def show(folder: Path) -> None:
    """Print a folder's scores. Raises UsageError: it does not exist, or nothing in it is finished."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give one with files history_<i>.json")
    histories = read_all(folder)
    if not histories:
        raise UsageError(f"{folder} has no finished episode; play some first")
    print(scores_of(histories)[1])
    there = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    if unfinished := len(there) - len(histories):
        print(f"{unfinished} episodes are not finished and not counted", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--local_path", type=Path, required=True, help="folder of history files")
    arguments = parser.parse_args(argv)
    return run_command("compute_score", lambda: show(arguments.local_path))


if __name__ == "__main__":
    sys.exit(main())
