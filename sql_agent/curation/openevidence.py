"""Draft an answer with evidence for every question, and verify each quote.

    .venv/bin/python utils/openevidence.py outputs/new.jsonl --output outputs/answered.jsonl --db sqlite:///data/medical.db

In: JSONL rows with `id` and `question`. The SQL agent queries the database with TEACHER_MODEL (its
endpoint must speak OpenAI's chat completions), then one call writes statements that cite {table,
row_id, field, quote}. Out: rows that `.venv/bin/python -m data.validate` accepts, with `answer`, `evidence`,
`entities` and `sql`. OUT.dropped.jsonl has rows that cannot be verified, with `refused` {reason,
detail}. "Nothing found" is never drafted, because a query without rows proves nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from common.command import positive
from common.jsonl import JsonlRows
from common.llm import LLMClient, LLMError
from common.llm.errors import clean
from common.settings import load_settings
from data.records import compact
from episodes.episode import Episode
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint
from sql_agent.agent import AGENT
from sql_agent.curation.cited_answer import Draft, Refused, build_messages, verify
from sql_agent.curation.llm_filter import LLMFilter, Row, run_filter
from sql_agent.curation.prompts import CITED, digest
from sql_agent.curation.queried_rows import RowFinder, merged
from sql_agent.gold.checker import Checker
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask
from tools.sql.query import QueryTool

# The form of a question's outcome. A higher number keeps an unfinished journal from being continued
VERSION = 2
ANSWER_TOKENS = 2_048
OPENAI_URL = "https://api.openai.com/v1"


class Drafter(LLMFilter):
    """Drafts answers from one database with one LLM.

    Raises DatabaseError: the database cannot be read. Raises LLMError (cause "setup"): the endpoint
    does not speak OpenAI's chat completions.
    """

    program = "openevidence"

    def __init__(self, options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> None:
        super().__init__(options, rows, client)
        settings = load_settings().of(SqlSettings)
        url = options.db or settings.database_url
        self.timeout = settings.episode_timeout
        self.endpoint = agent_endpoint(client)
        # Episodes are not judged here: what is drafted from them is checked against the database.
        unjudged = {"teacher_model": None, "reward_model_url": None}
        self.environment = AGENT.open(
            settings.model_copy(update={"database_url": url, **unjudged}), {}
        )
        self.finder = RowFinder(url)
        self.checker = Checker(url)
        self.refused: Counter[str] = Counter()
        self.depends = {
            "version": VERSION,
            "prompt": digest(CITED)[:16],
            "database": QueryTool(url).database().label,
            "max_turns": options.max_turns,
        }

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        what = "the database (default: DATABASE_URL, else the embedded one)"
        parser.add_argument("--db", metavar="URL", help=what)
        what = "calls of the agent a question (6)"
        parser.add_argument("--max-turns", type=positive(int), default=6, metavar="N", help=what)

    def key(self, row: Row) -> str:
        return digest(f"{row['id']}\0{row['question']}")

    async def ask(self, row: Row) -> Row:
        """Return the columns to add, or `refused` with reason and detail. Raises LLMError."""
        episode = await self.play(row["question"])
        try:
            return await self.drafted(row, episode)
        except Refused as refused:
            return {"refused": {"reason": refused.reason, "detail": str(refused)}}

    async def play(self, question: str) -> Episode:
        """Return the episode in which the agent looks for an answer. Raises LLMError."""
        task = SqlTask(id="draft", question=question)
        policy = ChatPolicy(self.endpoint, self.options.max_turns)
        episode = self.environment.play(task, policy)
        played = await play(self.environment, task, episode, policy, self.timeout)
        if played.detail:
            late = played.reward.unscored == "timeout"
            detail = clean(played.detail, self.endpoint.api_key)
            raise LLMError(detail, "timeout" if late else "status")
        return played.episode

    async def drafted(self, row: Row, episode: Episode) -> Row:
        """Return the columns of a verified answer from what the agent read. Raises Refused."""
        rows_of = {}
        complete = set()
        for query in episode.events:
            if query.result.ok and query.result.rows:
                rows_of[query.sql] = await asyncio.to_thread(self.finder.rows_of, query.sql)
                if query.result.count == len(query.result.rows):
                    complete.add(query.sql)
        rows = merged(chain(*rows_of.values()))
        if not rows:
            ran = f"{len(rows_of)} of {len(episode.events)} queries gave rows"
            raise Refused("no_rows", f"no row can be cited ({ran}, {episode.stop_reason})")
        messages = build_messages(row["question"], rows)
        draft = await self.client.ask(messages, Draft, max_tokens=ANSWER_TOKENS)
        evidence = verify(draft, row["question"], rows)
        cited = {(item["table"], item["row_id"]) for item in evidence}
        used = []
        for sql, found in rows_of.items():
            if sql in complete and any(shown.key in cited for shown in found):
                used.append(sql)
        names = [shown.name for shown in rows if shown.key in cited and shown.name]
        columns: Row = {
            "answer": "\n".join(statement.text.strip() for statement in draft.statements),
            "evidence": compact(evidence),
            "entities": compact(list(dict.fromkeys(names))),
            "sql": used[0] if len(used) == 1 else used,
        }
        (finding,) = await asyncio.to_thread(self.checker.check, [row | columns])
        if finding.problems or finding.lacks_rows:
            raise Refused("check_failed", ": ".join((finding.problems + finding.unchecked)[0]))
        return columns

    def judge(self, row: Row, result: Row) -> tuple[Row, bool]:
        if "refused" in result:
            self.refused[result["refused"]["reason"]] += 1
        return row | result, "refused" not in result

    def finish(self) -> None:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.refused.most_common())
        print(f"{self.program}: refused: {reasons or 'none'}")


def agent_endpoint(client: LLMClient) -> Endpoint:
    """Return the address at which the agent finds the client's model.

    Raises LLMError if no known address speaks chat completions.
    """
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
