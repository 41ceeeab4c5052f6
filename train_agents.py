"""Train one policy to be several agents; flags as for one agent, each agent's file behind its name.

.venv/bin/python train_agents.py --agents sql,diagnosis:2 --ci-fast       a weight stands behind a colon
.venv/bin/python train_agents.py --agents sql,code --train-file sql=my.parquet,code=data/code/train.parquet
"""

import sys

from common.command import start

if __name__ == "__main__":
    sys.exit(start("training.start.command", "main_of_several"))
