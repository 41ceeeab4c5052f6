"""Answer every question from the database, and keep the answers that quote what was read.

    .venv/bin/python utils/openevidence.py outputs/new.jsonl --output outputs/answered.jsonl

In: JSONL rows with `id` and `question`. The SQL agent queries the database (DATABASE_URL) with
TEACHER_MODEL, whose endpoint must speak OpenAI's chat completions. Its answer is kept if it quotes
all that its last query returned, word for word, and says nothing else. Out: these rows with
`answer`, `sql` and `structured_gt`, which `.venv/bin/python -m data.validate` accepts.
OUT.dropped.jsonl has the others, with `refused` {reason, detail}. "Nothing found" is never kept,
because a query without rows proves nothing.
"""

import argparse
import sys
from collections.abc import Sequence

from common.llm import LLMClient, LLMError
from common.llm.errors import clean
from common.settings import load_settings
from data.records import compact
from episodes.episode import Episode
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint
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
OPENAI_URL = "https://api.openai.com/v1"


class Drafter(LLMFilter):
    """Answers from one database with one LLM. Raises DatabaseError, LLMError: one cannot be used."""

    program = "openevidence"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        settings = load_settings().of(SqlSettings)
        self.timeout = settings.episode_timeout
        self.endpoint = agent_endpoint(self.client)
        # Episodes are not judged here: their answers are checked against the database.
        unjudged = {"teacher_model": None, "reward_model_url": None}
        self.environment = AGENT.open(settings.model_copy(update=unjudged), {})
        self.checker = Checker(settings.database_url, settings.tables)
        self.depends = {"version": VERSION, "database": self.checker.tool.database().label}

    async def ask(self, row: Row) -> Row:
        """Return the columns to add, or `refused` with reason and detail. Raises LLMError."""
        return quoted(row["question"], await self.play(row["question"]))

    async def play(self, question: str) -> Episode:
        """Return the episode in which the agent looks for an answer. Raises LLMError."""
        task = SqlTask(id="draft", question=question)
        policy = ChatPolicy(self.endpoint, MAX_TURNS)
        episode = self.environment.play(task, policy)
        played = await play(self.environment, task, episode, policy, self.timeout)
        if played.detail:
            late = played.reward.unscored == "timeout"
            detail = clean(played.detail, self.endpoint.api_key)
            raise LLMError(detail, "timeout" if late else "status")
        return played.episode

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
    if ReferenceJudge().bears_out(case).score != 1:
        return refused("not_quoted", f"the answer does not only quote the rows: {answer[:80]!r}")
    return {"answer": answer, "sql": ran[-1].sql, "structured_gt": compact(gold)}


def refused(reason: str, detail: str) -> Row:
    return {"refused": {"reason": reason, "detail": detail}}


def agent_endpoint(client: LLMClient) -> Endpoint:
    """Return where the client's model speaks chat completions. Raises LLMError: nowhere known."""
    provider = client.provider
    url = provider.base_url or (OPENAI_URL if provider.name == "openai" else None)
    if not url:
        wanted = "an endpoint that speaks OpenAI's chat completions"
        raise LLMError(f"{client.model}: set TEACHER_BASE_URL to {wanted}", "setup")
    return Endpoint(
        url,
        provider.model,
        provider.api_key,
        temperature=0.0,
        top_p=None,
        chat_model=client.chat_model(),
    )


def main(argv: Sequence[str] | None = None) -> int:
    return run_filter(Drafter, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
