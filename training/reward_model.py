"""Train a reward model: a score for a question and an answer, learned from pairs.

    .venv/bin/python -m training.reward_model sql --base models/warm --out models/reward --episodes outputs/evaluations/mine
    .venv/bin/python -m training.reward_model sql --base Qwen/Qwen3-0.6B --out reward --pairs pairs.jsonl --lora-rank 16
    .venv/bin/python -m training.serve --reward-model models/reward  # says which settings to use it with

Pairs come from the same places as those of training.preferences. A fifth of the tasks is held out.
reward_model.json says how often the better answer of these scores higher. reward_scale.json maps
raw scores to [0, 1]. A killed command goes on when it is given again. Exit codes: 0 done, 1
failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from common.command import imported, new_parser, run_command
from common.stopping import stop_in_order
from episodes import registry
from training.pairs.asked import add_flags, pairs_asked


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    base = "the language model it begins as"
    parser.add_argument("--base", required=True, metavar="DIR", help=base)
    add_flags(parser, lr=1e-5)
    stop_in_order()

    def learn() -> None:
        arguments = parser.parse_args(argv)
        found, left_out = pairs_asked(registry.get(arguments.agent), arguments, answers=True)
        imported("training.pairs.ranking").rank(arguments, found, left_out)

    afterwards = "the same command goes on from the last checkpoint"
    return run_command("reward_model", learn, afterwards)


if __name__ == "__main__":
    sys.exit(main())
