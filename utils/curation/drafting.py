"""From a question to a verified row, or to the reason why there is none. Used by `utils/openevidence.py`.

drafter = Drafter(client, load_settings(), None, max_turns=6)
await drafter.draft({"id": "q1", "question": "..."})      # {"answer": ..., ...} or {"refused": {...}}
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from common.llm import LLMClient, load_litellm
from common.llm_error import LLMError, clean
from data.questions.gold_check import Checker
from episodes.openai_agents import Endpoint, Episode, EpisodeError, run_episode
from tools.sql.query import QueryResult, QueryTool
from utils.curation.cited_answer import Draft, Refused, build_messages, verify
from utils.curation.found_rows import FoundRow, RowFinder

if TYPE_CHECKING:
    from common.settings import Settings

ANSWER_TOKENS = 2_048
OPENAI_URL = "https://api.openai.com/v1"

Row = dict[str, Any]


class Drafter:
    """Drafts answers from one database with one LLM.

    Raises:
        DatabaseError: the database can not be read.
        LLMError: cause "setup", the model's endpoint does not speak OpenAI's chat completions.
    """

    def __init__(self, client: LLMClient, settings: Settings, database_url: str | None, max_turns: int) -> None:
        url = database_url or settings.database_url
        self.client, self.max_turns = client, max_turns
        self.timeout = settings.episode_timeout
        self.endpoint = agent_endpoint(client.model, settings)
        self.tool, self.finder, self.checker = QueryTool(url), RowFinder(url), Checker(url)
        self.database_label = self.tool.database().label
        self.episodes = 0
        self._checking = asyncio.Lock()  # a Checker holds the cells of one row at a time

    async def draft(self, row: Row) -> Row:
        """The columns to add to the row; or `refused` with reason and detail.

        Raises:
            LLMError: the machine failed; nothing is known of the question.
        """
        episode = await self._play(row["question"])
        try:
            return await self._from(row, episode)
        except Refused as refused:
            return {"refused": {"reason": refused.reason, "detail": str(refused)}}

    async def _play(self, question: str) -> Episode:
        self.episodes += 1
        try:
            async with asyncio.timeout(self.timeout):
                return await run_episode(question, self.endpoint, self.tool, self.max_turns)
        except TimeoutError:
            raise LLMError(f"no end of the episode after {self.timeout:g} s (EPISODE_TIMEOUT)", "timeout") from None
        except EpisodeError as error:
            raise LLMError(clean(str(error), self.endpoint.api_key), "status") from None

    async def _from(self, row: Row, episode: Episode) -> Row:
        queries = queries_of(episode)
        rows_of = {sql: await asyncio.to_thread(self.finder.rows_of, sql) for sql, _ in queries}
        rows = merged(rows_of.values())
        if not rows:
            ran = f"{len(queries)} of {len(episode.tool_results)} queries gave rows, {episode.stop_reason}"
            raise Refused("no_rows", f"the agent found no row that can be cited ({ran})")
        answer = await self.client.ask(build_messages(row["question"], rows), Draft, max_tokens=ANSWER_TOKENS)
        evidence = verify(answer.value, row["question"], rows)
        cited = {(item["table"], item["row_id"]) for item in evidence}
        used = [
            (sql, result)
            for sql, result in queries
            if result.count == len(result.rows) and cited & {(found.table, found.row_id) for found in rows_of[sql]}
        ]
        names = [found.name for found in rows if (found.table, found.row_id) in cited and found.name]
        columns = {
            "answer": answer.value.answer,
            "sql": [sql for sql, _ in used],
            "evidence": _json(evidence),
            "entities": _json(list(dict.fromkeys(names))),
        }
        return await self._checked(row, columns, gold_of(used, evidence))

    async def _checked(self, row: Row, columns: Row, gold: str) -> Row:
        """The columns with the gold table if the answer says all of it, else without; both checked like a data set.

        Raises:
            Refused: "check_failed", `python -m data.validate` would not accept the row.
        """
        problem = ""
        for structured in filter(None, (gold, " ")):
            candidate = columns | {"structured_gt": structured.strip()}
            async with self._checking:
                finding = (await asyncio.to_thread(self.checker.check, [row | candidate]))[0]
            if not finding.problems and not any(field == "evidence" for field, _ in finding.unchecked):
                return candidate | {"sql": _one_or_list(columns["sql"])}
            problem = ": ".join((finding.problems + finding.unchecked)[0])
        raise Refused("check_failed", problem)


def queries_of(episode: Episode) -> list[tuple[str, QueryResult]]:
    """The agent's different statements that returned rows, in order, with what they returned."""
    sqls = {
        call["id"]: call["function"]["arguments"]
        for message in episode.messages
        for call in message.get("tool_calls") or ()
    }
    answered = [message["tool_call_id"] for message in episode.messages if message["role"] == "tool"]
    found: dict[str, QueryResult] = {}
    for call_id, result in zip(answered, episode.tool_results, strict=True):
        if result.ok and result.rows:
            found.setdefault(json.loads(sqls[call_id])["sql"], result)
    return list(found.items())


def merged(lists: Any) -> list[FoundRow]:
    """The rows of several queries, each once, with the cells of all."""
    rows: dict[tuple[str, int], FoundRow] = {}
    for row in (row for rows_of in lists for row in rows_of):
        known = rows.get((row.table, row.row_id))
        cells = (known.cells if known else {}) | row.cells
        rows[row.table, row.row_id] = FoundRow(row.table, row.row_id, row.name, cells)
    return list(rows.values())


def gold_of(used: list[tuple[str, QueryResult]], evidence: list[dict[str, Any]]) -> str:
    """What the only query returned in the cited columns, as JSON of `structured_gt`; "" where that can not be told."""
    if len(used) != 1:
        return ""
    result = used[0][1]
    fields = list(dict.fromkeys(item["field"] for item in evidence))
    names = [name.lower() for name in result.columns]
    if result.truncated or not set(fields) <= set(names):
        return ""
    places = [names.index(field) for field in fields]
    return _json({"columns": fields, "rows": [[line[place] for place in places] for line in result.rows]})


def agent_endpoint(model: str, settings: Settings) -> Endpoint:
    """The chat-completions endpoint behind litellm's name of a model.

    Raises:
        LLMError: cause "setup", there is none that is known.
    """
    litellm = load_litellm()
    key = settings.teacher_api_key.get_secret_value() if settings.teacher_api_key else None
    try:
        name, provider, own_key, url = litellm.get_llm_provider(model, api_base=settings.teacher_base_url)
    except litellm.BadRequestError:
        raise LLMError(f"{model}: litellm knows no such provider; write it as openai/NAME", "setup") from None
    url = settings.teacher_base_url or url or (OPENAI_URL if provider == "openai" else None)
    if not url:
        raise LLMError(f"{model}: set TEACHER_BASE_URL to an endpoint that speaks OpenAI's chat completions", "setup")
    return Endpoint(url, name, key or own_key, temperature=0.0, top_p=None)


def _one_or_list(statements: list[str]) -> str | list[str]:
    return statements[0] if len(statements) == 1 else statements


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
