"""`medical-agent-rl COMMAND ...`: the commands of the installed package, in any folder.

    medical-agent-rl train sql --ci-fast
    medical-agent-rl evaluate sql --model runs/NAME

COMMAND is one of {commands}; `medical-agent-rl COMMAND --help` explains it.
Runs and results go to runs/ and outputs/ of the folder you are in, and `.env` is read there.
"""

import os
import sys
from collections.abc import Sequence

COMMANDS = {
    "train": "training.launch",
    "demo": "evaluation.demo",
    "evaluate": "evaluation.evaluate",
    "compare": "evaluation.compare",
    "report": "evaluation.report",
    "play": "evaluation.play",
    "serve": "evaluation.serve",
    "export": "training.export",
    "new": "episodes.new",
    "check-install": "utils.check_install",
}


def main(argv: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["-h"], ["--help"]):
        print((__doc__ or "").format(commands=", ".join(COMMANDS)))
        return
    if not words or words[0] not in COMMANDS:
        seen = repr(words[0]) if words else "nothing"
        print(f"medical-agent-rl: expected {', '.join(COMMANDS)}, got {seen}", file=sys.stderr)
        sys.exit(2)
    # A folder `tools` or `utils` of the user's must not stand before the package's own
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["MEDICAL_AGENT_RL_CALLED"] = f"medical-agent-rl {words[0]}"
    os.execv(sys.executable, [sys.executable, "-m", COMMANDS[words[0]], *words[1:]])
