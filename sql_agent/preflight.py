"""What a training run asks of its questions and its judge before anything heavy is started.

Used by `train_sql_agent.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from common.settings import load_settings
from data.load import count_without_reference
from data.questions.check import Checker
from data.questions.draft import fill_answers
from scoring.judge import ReferenceJudge, choose_judge, why_unusable
from sql_agent.judge_words import WORDS
from sql_agent.reward import rubric_from

CHECKED = 64  # questions of each file that are checked against the database before training


class PreflightError(ValueError):
    """Rows or judge cannot be trained with; the message says what to do."""


def prepare_rows(rows: dict[str, list[dict[str, Any]]], check: bool) -> None:
    """Draft missing answers, check a sample against the database if asked to, and say what was read and found."""
    url = load_settings().database_url
    for name, found in rows.items():
        drafted = fill_answers(found, url)
        bare = count_without_reference(found)
        notes = [f", {drafted} answers drafted from gold SQL or evidence"] if drafted else []
        notes += [f", {bare} without an answer (judged without a reference)"] if bare else []
        print(f"{name}: {len(found)} questions{''.join(notes)}", flush=True)
        if not check:
            continue
        findings = Checker(url).check(found[:: max(1, len(found) // CHECKED)][:CHECKED])
        wrong = [(finding.row["id"], *finding.problems[0]) for finding in findings if finding.problems]
        if wrong:
            print(
                f"{name}: {len(wrong)} of {len(findings)} checked questions have a problem, such as "
                f"{': '.join(wrong[0])}; python -m data.validate FILE lists all",
                flush=True,
            )


def require_references(rows: list[dict[str, Any]]) -> None:
    """Raises PreflightError when the judge that would be used can score too few of the rows."""
    settings = load_settings()
    offline = choose_judge(settings, WORDS).name == ReferenceJudge.name
    bare = [row for row in rows if not row["answer"]]  # what has gold has an answer drafted from it
    if offline and len(bare) > settings.max_unscored_share * len(rows):
        raise PreflightError(
            f"{len(bare)} of {len(rows)} training rows have no answer to compare with, and the offline reference judge "
            "needs one; set TEACHER_MODEL or REWARD_MODEL_URL, or give answers"
        )


def check_judge() -> None:
    """Ask the judge for one verdict; raises PreflightError when there is none, SettingsError for wrong REWARD_TERMS."""
    settings = load_settings()
    if "judge" not in rubric_from(settings).weights:
        return
    problem = asyncio.run(why_unusable(choose_judge(settings, WORDS), WORDS.known_case))
    if problem:
        raise PreflightError(
            f"{problem}; expected one for a known answer within JUDGE_TIMEOUT={settings.judge_timeout:g} s. Start the "
            "judge, or set TEACHER_MODEL, TEACHER_BASE_URL and TEACHER_API_KEY, or REWARD_MODEL_URL and REWARD_SCALE, "
            "to one that answers; with none of them set the offline reference judge is used"
        )
