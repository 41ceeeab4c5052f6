"""Write the questions of the set `calculators`: a parquet file of each split.

    .venv/bin/python -m recipes.calculators.build --out data/calculators --force

The same seed gives the same bytes.
"""

import sys

from recipes.calculators.formula_questions import draw_questions
from recipes.drawing import CODE, drawing_parser, write_drawn


def main(arguments: list[str] | None = None) -> int:
    options = drawing_parser("recipes.calculators.build", __doc__).parse_args(arguments)
    return write_drawn(options, lambda: draw_questions(seed=options.seed), CODE)


if __name__ == "__main__":
    sys.exit(main())
