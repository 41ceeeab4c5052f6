"""Train the SQL agent; the command line is training/start/command.py's, the same for every agent.

.venv/bin/python train_sql_agent.py --ci-fast                   one step on this machine, to see it work
.venv/bin/python train_sql_agent.py                             the long run
AGL_MANAGED_STORE=0 .venv/bin/python train_sql_agent.py --llm-proxy --model DIR --external-store-address http://HOST:4747
"""

import sys

from common.command import start

if __name__ == "__main__":
    sys.exit(start("training.start.command", "main", "sql"))
