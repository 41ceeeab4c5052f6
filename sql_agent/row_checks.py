"""Checks a training run's questions before anything heavy is started."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import make_url

from common.language import said
from episodes.agent import Row
from episodes.episode import AgentError
from episodes.judge_probe import spread
from scoring.judge import choose_judge
from sql_agent.gold.checker import Checker
from sql_agent.gold.draft import fill_answers
from sql_agent.gold.markup import comparable
from sql_agent.intake.question_files import count_without_reference, nested
from sql_agent.judge_words import WORDS
from sql_agent.settings import SqlSettings

CHECKED = 64  # questions of each file that are checked against the database
FOUND_SHARE = 0.1  # of gold queries. If fewer find their gold, it is somebody else's database


def check(rows: Mapping[str, Sequence[Row]], settings: SqlSettings, plays: bool) -> list[str]:
    """Draft missing answers, check a sample if episodes are played, and return notes.

    Raises AgentError: the judge can score too few training rows, or they are of another database.
    """
    notes = []
    for name, part in rows.items():
        drafted = fill_answers(part, settings.database_url, settings.tables)
        bare = count_without_reference(part)
        note = said("{name}: {count} questions", name=name, count=len(part))
        if drafted:
            note += f", {drafted} answers drafted from gold"
        if bare:
            note += f", {bare} without an answer (judged without a reference)"
        notes.append(note)
        if plays:
            notes += _check_sample(name, spread(part, CHECKED), settings)
    train = rows.get("train", [])  # an evaluation has others
    offline = choose_judge(settings, WORDS, None) is None
    # Rows with gold have a drafted answer by now
    bare = count_without_reference(train)
    if offline and bare > settings.max_unscored_share * len(train):
        raise AgentError(
            f"{bare} of {len(train)} training rows have no answer to compare with, and the offline "
            "reference judge needs one; set TEACHER_MODEL or REWARD_MODEL_URL, or give answers"
        )
    return notes


def _check_sample(name: str, sample: Sequence[Row], settings: SqlSettings) -> list[str]:
    """Return a note if questions have a problem."""
    findings = Checker(settings.database_url, settings.tables).check(sample)
    asked = found = 0
    for row, finding in zip(sample, findings, strict=True):
        gold = nested(row, "structured_gt")
        values = _values(gold["rows"]) if gold and finding.results else set()
        if values:
            asked += 1
            found += any(values & _values(result.rows) for result in finding.results)
    if found < FOUND_SHARE * asked:
        made_from = sample[0].get("database")
        source = f"; the rows were made from {made_from}" if made_from else ""
        raise AgentError(
            f"{name}: {asked - found} of {asked} gold queries find nothing of their gold "
            f"in the database {make_url(settings.database_url).render_as_string()}{source}; set "
            "DATABASE_URL to the database that the rows were made from"
        )
    wrong = [finding for finding in findings if finding.problems]
    if not wrong:
        return []
    example = ": ".join((wrong[0].row["id"], *wrong[0].problems[0]))
    return [
        f"{name}: {len(wrong)} of {len(sample)} checked questions have a problem, such as "
        f"{example}; .venv/bin/python -m data.validate FILE lists all"
    ]


def _values(rows: Sequence[Sequence[Any]]) -> set[str]:
    """Return the values of a result as they compare. A count of 0 finds nothing."""
    cells = [cell for cell in chain(*rows) if cell not in (None, "", 0)]
    return {comparable(str(cell)) for cell in cells}
