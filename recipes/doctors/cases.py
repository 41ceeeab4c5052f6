"""Draw an agent's cases from the tables of conditions: invented patients, no two alike.

consultation: the doctor reads one sentence, which leaves at least three conditions open. Hidden are
a value of every facet and the complaint's symptoms, in the patient's own words. `distinguishing` is
what a doctor who knows the tables asks until one condition is left (bayes.py). The
columns are those of DoctorAgent-RL's files.

diagnosis: the doctor reads a summary in English, which leaves at least three conditions open, and
sees the results of the examinations that are ordered. The columns are those of DiagAgent's files.

A patient whose answers or key results do not settle the case is not drawn. Some wordings are
reserved for rows of the test file marked "unseen". The same seed gives the same bytes.

    .venv/bin/python -m conditions.cases consultation --out data/consultation --force
    .venv/bin/python -m conditions.cases diagnosis --out my_cases --rows train=5000,val=500,test=1000 --seed 1
"""

import argparse
import sys

from conditions.table import load_tables
from data.parquet import CONSULTATION, DIAGNOSIS, Form
from recipes.doctors.consultation_cases import ROWS, draw_cases
from recipes.doctors.diagnosis_cases import draw_diagnosis_cases
from recipes.drawing import drawing_parser, write_drawn

CONSULTED: Form = {
    "index": int, "condition": str, "department": str, "difficulty": str, "complaint": str, "age": int, "sex": str,
    "facets": str, "symptoms": str, "values": str, "distinguishing": [str], "wording": str,
}  # fmt: skip
DIAGNOSED: Form = {
    "split": str, "index": int, "answer": str, "question": str, "text": str, "key_exam_names": [str], "id": str,
    "condition": str, "group": str, "difficulty": str, "wording": str, "aliases": [str], "age": int, "sex": str,
    "examinations": [dict.fromkeys(("name", "results", "reference_range"), str)],
}  # fmt: skip
AGENTS = {
    "consultation": (draw_cases, {**CONSULTATION, "extra_info": CONSULTED}),
    "diagnosis": (draw_diagnosis_cases, {**DIAGNOSIS, "extra_info": DIAGNOSED}),
}


def _rows(text: str) -> dict[str, int]:
    try:
        wanted = {
            name.strip(): int(number)
            for name, number in (part.split("=") for part in text.split(","))
        }
    except ValueError:
        wanted = {}
    if not wanted or wanted.keys() - ROWS.keys() or min(wanted.values()) < 1:
        raise argparse.ArgumentTypeError(f"expected train=N,val=N,test=N, got {text!r}")
    return wanted


def main(arguments: list[str] | None = None) -> int:
    parser = drawing_parser("conditions.cases", __doc__)
    parser.add_argument("agent", choices=AGENTS, help="the agent that reads the cases")
    parser.add_argument(
        "--rows", type=_rows, default=ROWS, help="train=N,val=N,test=N (default: 960, 96, 320)"
    )
    options = parser.parse_args(arguments)
    draw, form = AGENTS[options.agent]
    return write_drawn(
        options,
        lambda: draw(load_tables(), options.rows, options.seed),
        form,
        "cases",
        options.rows,
    )


if __name__ == "__main__":
    sys.exit(main())
