"""Pass EHRSQL's gold statements through the SQL guard, and count the refused ones.

    .venv/bin/python -m sql_agent.guard_corpus valid.json --schema eicu.sql

EHRSQL-2024 works too. Nothing is executed. Exit code 1: a statement was refused.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from common.command import new_parser, run_command
from sql_agent.ehrsql.published import read_questions
from sql_agent.ehrsql.schema import read_schema
from tools.sql.bounds import Refused
from tools.sql.guard import check


def refusals(gold: Collection[str], tables: Collection[str]) -> dict[str, str]:
    """Return the reason for each different statement that the guard refuses."""
    refused = {}
    for sql in dict.fromkeys(gold):
        try:
            check(sql, "sqlite", tables)
        except Refused as error:
            refused[sql] = str(error)
    return refused


def report(path: Path, schema: Path) -> int:
    """Print the counts, and each refused statement with its reason. Return the exit code."""
    questions = read_questions(path).questions
    gold = [question.sql for question in questions if question.sql]
    refused = refusals(gold, read_schema(schema))
    for sql, reason in refused.items():
        print(f"refused: {reason}\n  {sql}")
    print(
        f"{path.name}: {len(questions)} questions, {len(questions) - len(gold)} without an answer "
        f"in the database; {len(set(gold))} different statements, {len(refused)} refused"
    )
    return 1 if refused else 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("file", type=Path, help="EHRSQL's questions, or EHRSQL-2024's label.json")
    parser.add_argument("--schema", type=Path, required=True, help="CREATE TABLE statements")
    arguments = parser.parse_args(argv)
    return run_command("guard_corpus", lambda: report(arguments.file, arguments.schema))


if __name__ == "__main__":
    sys.exit(main())
