"""Have a model solve the tasks of a set, with MedAgentGym's command line, YAML and files.

    .venv/bin/python code_agent/main.py --config_path code_agent/configs/demo.yaml
    .venv/bin/python code_agent/main.py --config_path my.yaml --task medcalcbench --end_idx 100 --async_run --n_jobs 8

Writes <work_dir>/<task>/<result_dir_tag>/<mode>/history_<i>.json: the messages, then the result.
Finished files are kept, so the same command continues after Ctrl-C. Exit codes: 0 done, 1 failed or
some episodes are not scored, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from code_agent.medagentgym.config import load_config, parser_of
from code_agent.medagentgym.runs import played
from common.command import run_command
from common.stopping import stop_in_order


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser_of(__doc__).parse_args(argv)
    stop_in_order()
    return run_command(
        "main",
        lambda: played(load_config(arguments)),
        afterwards="the same command goes on from here",
    )


if __name__ == "__main__":
    sys.exit(main())
