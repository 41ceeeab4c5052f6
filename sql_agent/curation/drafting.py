"""From a question to a verified row, or to the reason why there is none. Used by
`utils/openevidence.py`.

drafter = Drafter(client, load_settings(), None, max_turns=6)
await drafter({"id": "q1", "question": "..."})      # {"answer": ..., ...} or {"refused": {...}}
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from common.llm import LLMClient, LLMError
from common.llm.errors import clean
from data.records import compact
from episodes.episode import Episode
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint
from sql_agent.agent import AGENT
from sql_agent.curation.cited_answer import INSTRUCTIONS, Draft, Refused, build_messages, verify
from sql_agent.curation.llm_pass import digest
from sql_agent.curation.queried_rows import RowFinder, merged
from sql_agent.gold.checker import Checker, project
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask
from tools.sql.query import QueryResult, QueryTool

if TYPE_CHECKING:
    from common.settings import Settings

# The form of a question's outcome; a higher number keeps an unfinished journal from being continued
VERSION = 1
ANSWER_TOKENS = 2_048
OPENAI_URL = "https://api.openai.com/v1"

Row = dict[str, Any]


class Drafter:
    """Drafts answers from one database with one LLM.

    Raises:
        DatabaseError: the database can not be read.
        LLMError: cause "setup", the model's endpoint does not speak OpenAI's chat completions.
    """

    def __init__(
        self, client: LLMClient, settings: Settings, database_url: str | None, max_turns: int
    ) -> None:
        settings = settings.of(SqlSettings)
        url = database_url or settings.database_url
        self.client = client
        self.max_turns = max_turns
        self.timeout = settings.episode_timeout
        self.endpoint = agent_endpoint(client)
        # Episodes are not judged here: what is drafted from them is checked against the database.
        unjudged = {"teacher_model": None, "reward_model_url": None}
        self.environment = AGENT.open(
            settings.model_copy(update={"database_url": url, **unjudged}), {}
        )
        self.finder = RowFinder(url)
        self.checker = Checker(url)
        self.depends: Row = {
            "version": VERSION,
            "prompt": digest(INSTRUCTIONS)[:16],
            "database": QueryTool(url).database().label,
            "max_turns": max_turns,
        }
        self.episodes = 0

    def key(self, row: Row) -> str:
        """Return the key of what a draft is about."""
        return digest(f"{row['id']}\0{row['question']}")

    async def __call__(self, row: Row) -> Row:
        """Return the columns to add to the row, or `refused` with reason and detail.

        Raises LLMError if the machine failed.
        """
        episode = await self._play(row["question"])
        try:
            return await self._from(row, episode)
        except Refused as refused:
            return {"refused": {"reason": refused.reason, "detail": str(refused)}}

    async def _play(self, question: str) -> Episode:
        self.episodes += 1
        task = SqlTask(id="draft", question=question)
        policy = ChatPolicy(self.endpoint, self.max_turns)
        episode = self.environment.play(task, policy)
        played = await play(self.environment, task, episode, policy, self.timeout)
        if played.detail:
            late = played.reward.unscored == "timeout"
            raise LLMError(
                clean(played.detail, self.endpoint.api_key), "timeout" if late else "status"
            )
        return played.episode

    async def _from(self, row: Row, episode: Episode) -> Row:
        queries = {
            query.sql: query.result
            for query in episode.events
            if query.result.ok and query.result.rows
        }
        rows_of = {sql: await asyncio.to_thread(self.finder.rows_of, sql) for sql in queries}
        rows = merged(shown for listed in rows_of.values() for shown in listed)
        if not rows:
            ran = (
                f"{len(queries)} of {len(episode.events)} queries gave rows, {episode.stop_reason}"
            )
            raise Refused("no_rows", f"the agent found no row that can be cited ({ran})")
        draft = (
            await self.client.ask(
                build_messages(row["question"], rows), Draft, max_tokens=ANSWER_TOKENS
            )
        ).value
        evidence = verify(draft, row["question"], rows)
        cited = {(item["table"], item["row_id"]) for item in evidence}
        cited_by = {
            sql: cited & {shown.key for shown in shown_rows} for sql, shown_rows in rows_of.items()
        }
        used = {
            sql: of for sql, of in queries.items() if of.count == len(of.rows) and cited_by[sql]
        }
        names = dict.fromkeys(shown.name for shown in rows if shown.key in cited and shown.name)
        answer = "\n".join(statement.text.strip() for statement in draft.statements)
        columns = {
            "answer": answer,
            "evidence": compact(evidence),
            "entities": compact(list(names)),
        }
        return await self._checked(
            row, columns | {"sql": list(used)}, gold_of([*used.values()], evidence)
        )

    async def _checked(self, row: Row, columns: Row, gold: str) -> Row:
        """Return the columns, with the gold table if the answer states all of it; both are checked
        like a data set.

        Raises:
            Refused: "check_failed", `python -m data.validate` would not accept the row.
        """
        problem = ""
        sql = columns["sql"]
        for structured in filter(None, (gold, " ")):
            candidate = columns | {"structured_gt": structured.strip()}
            (finding,) = await asyncio.to_thread(self.checker.check, [row | candidate])
            if not finding.problems and not any(
                field == "evidence" for field, _ in finding.unchecked
            ):
                return candidate | {"sql": sql[0] if len(sql) == 1 else sql}
            problem = ": ".join((finding.problems + finding.unchecked)[0])
        raise Refused("check_failed", problem)


def gold_of(used: list[QueryResult], evidence: list[dict[str, Any]]) -> str:
    """Return what the only query returned in the cited columns, as JSON of `structured_gt`; "" if
    that is not certain.
    """
    fields = list(dict.fromkeys(item["field"] for item in evidence))
    rows = project(used[0], fields) if len(used) == 1 and not used[0].truncated else None
    return "" if rows is None else compact({"columns": fields, "rows": rows})


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
