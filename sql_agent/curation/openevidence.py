"""Answer every question from the database, and keep the answers that quote what was read.

    .venv/bin/python utils/openevidence.py outputs/new.jsonl --output outputs/answered.jsonl

In: JSONL rows with `id` and `question`. The SQL agent queries the database (DATABASE_URL) with
TEACHER_MODEL. Its answer is kept if it quotes all that its last query returned, word for word, and
says nothing else. Out: these rows with `answer`, `sql` and `structured_gt`, which
`.venv/bin/python -m data.validate` accepts. OUT.dropped.jsonl has the others, with `refused`
{reason, detail}. "Nothing found" is never kept, because a query without rows proves nothing.
"""

import argparse
import sys
from collections.abc import Sequence

from common.llm.client import Usage
from common.llm.errors import LLMError, clean
from data.records import compact
from episodes.episode import Episode
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, endpoint_elsewhere
from scoring.case import Case
from sql_agent.agent import AGENT
from sql_agent.curation.llm_filter import LLMFilter, Row, run_filter
from sql_agent.gold.checker import Checker, without_key
from sql_agent.gold.draft import from_table
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask

# The form of a question's outcome. A higher number keeps an unfinished journal from being continued
VERSION = 4
MAX_TURNS = 6


class Drafter(LLMFilter):
    program = "openevidence"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.key = self.client.chat_model.provider.api_key
        self.endpoint = endpoint_elsewhere(
            self.client.model, self.settings.teacher_base_url, self.key, temperature=0.0, top_p=None
        )
        # Episodes are not judged here: their answers are checked against the database.
        unjudged = {"teacher_model": None, "reward_model_url": None}
        settings = self.settings.of(SqlSettings).model_copy(update=unjudged)
        self.environment = AGENT.open(settings, {})
        self.checker = Checker(settings.database_url, settings.tables)
        self.depends = {"version": VERSION, "database": self.checker.tool.database().label}

    async def ask(self, row: Row) -> Row:
        task = SqlTask(id="draft", question=row["question"])
        policy = ChatPolicy(self.endpoint, MAX_TURNS)
        episode = self.environment.play(task, policy)
        seconds = self.settings.episode_timeout
        played = await play(self.environment, task, episode, policy, seconds)
        tokens = {
            "prompt_tokens": policy.prompt_tokens,
            "completion_tokens": policy.completion_tokens,
        }
        self.client.usage.add(Usage(calls=policy.turns, **tokens))
        if played.detail:
            late = played.reward.unscored == "timeout"
            raise LLMError(clean(played.detail, self.key), "timeout" if late else "status")
        return quoted(row["question"], played.episode)

    def judge(self, row: Row, result: Row) -> tuple[Row, bool]:
        if "refused" not in result:
            (finding,) = self.checker.check([row | result])
            if finding.problems:
                result = refused("check_failed", str(finding.problems[0]))
        return row | result, "refused" not in result


def quoted(question: str, episode: Episode) -> Row:
    """Return the columns of an answer that quotes all that the last query returned, or `refused`
    with "no_rows", "cut" or "not_quoted".
    """
    ran = [query for query in episode.events if query.result.ok]
    if not ran or not ran[-1].result.rows or ran[-1].is_made_up:
        return refused("no_rows", f"the last query read nothing ({episode.stop_reason})")
    result = ran[-1].result
    if result.count > len(result.rows) or result.cut:
        return refused("cut", "the last query returned more than the tool shows")
    gold = without_key(result)
    answer = (episode.answer or "").strip()
    named = from_table(gold, [])  # says the fields in Chinese, as the answer does
    case = Case(question, answer, named, gold={"structured_gt": gold})
    if ReferenceJudge().compare(case, by_reference=False).score != 1:
        return refused("not_quoted", f"the answer does not only quote the rows: {answer[:80]!r}")
    return {"answer": answer, "sql": ran[-1].sql, "structured_gt": compact(gold)}


def refused(reason: str, detail: str) -> Row:
    return {"refused": {"reason": reason, "detail": detail}}


def main(argv: Sequence[str] | None = None) -> int:
    return run_filter(Drafter, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
