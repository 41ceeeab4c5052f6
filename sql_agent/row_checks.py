"""What a training run asks of its questions before anything heavy is started. Used by `SqlAgent.check`."""

from __future__ import annotations

from collections.abc import Sequence

from common.settings import Settings
from data.load import check_rows, count_without_reference, fill_answers
from episodes.agent import AgentError, Row
from scoring.judge import ReferenceJudge, choose_judge
from sql_agent.judge_words import WORDS

CHECKED = 64  # questions of each file that are checked against the database


def notes_on(name: str, rows: Sequence[Row], settings: Settings) -> list[str]:
    """Draft missing answers into the rows, check a sample against the database; a line for each thing to know."""
    drafted = fill_answers(list(rows), settings.database_url)
    bare = count_without_reference(list(rows))
    counts = [f", {drafted} answers drafted from gold SQL or evidence"] if drafted else []
    counts += [f", {bare} without an answer (judged without a reference)"] if bare else []
    notes = [f"{name}: {len(rows)} questions{''.join(counts)}"]
    findings = check_rows(rows[:: max(1, len(rows) // CHECKED)][:CHECKED], settings.database_url)
    wrong = [(finding.row["id"], *finding.problems[0]) for finding in findings if finding.problems]
    if wrong:
        notes.append(
            f"{name}: {len(wrong)} of {len(findings)} checked questions have a problem, such as "
            f"{': '.join(wrong[0])}; python -m data.validate FILE lists all"
        )
    return notes


def require_references(rows: Sequence[Row], settings: Settings) -> None:
    """Raises AgentError when the judge that would be used can score too few of the rows."""
    offline = choose_judge(settings, WORDS).name == ReferenceJudge.name
    bare = [row for row in rows if not row["answer"]]  # what has gold has an answer drafted from it
    if offline and len(bare) > settings.max_unscored_share * len(rows):
        raise AgentError(
            f"{len(bare)} of {len(rows)} training rows have no answer to compare with, and the offline reference judge "
            "needs one; set TEACHER_MODEL or REWARD_MODEL_URL, or give answers"
        )
