"""Episodes without a model: gold statements through the real tool, and gold answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from episodes.episode import AgentError, Conversation, Episode
from sql_agent.prompts import COLUMNS, TOOL, TOOL_NAME, first_messages, system_prompt
from sql_agent.reward import Query
from sql_agent.tables import NAME_COLUMN
from sql_agent.task import SqlTask
from tools.sql.query import QueryResult, QueryTool

# A gold statement that searches for a part of a name.
SEARCH = re.compile(r"(?P<fields>SELECT .+ FROM (?P<table>\w+)) WHERE \w+ LIKE '%[^%]*%'")


@lru_cache(maxsize=8)
def prompt_for(tool: QueryTool) -> str:
    """Return the system prompt that names the readable tables.

    The database describes tables other than ours. Raises DatabaseError: it cannot be read, or lacks
    one.
    """
    columns = {table: names for table, names in COLUMNS.items() if table in tool.allowed_tables}
    for table in sorted(tool.allowed_tables - columns.keys()):
        database = tool.database()
        names = [column.name for column in database.columns(table)]
        columns[database.as_written(table)] = tuple(map(database.as_written, names))
    return system_prompt(columns)


def gold_episode(task: SqlTask, tool: QueryTool) -> Episode:
    episode = Episode(messages=list(first_messages(task.question, prompt_for(tool))))
    for statement in task.sql:
        query_in(episode, statement, tool)
    return answer_in(episode, task.reference)


def gold_conversations(
    tasks: Sequence[SqlTask], database_url: str, tables: Iterable[str] = COLUMNS
) -> Iterable[Conversation]:
    """Yield a gold episode for each task with gold SQL and answer.

    Where the question has another name than the database, the episode asks for that one first and
    takes the right one from the tool's hint. Raises AgentError: a gold statement fails. Raises
    DatabaseError: the database cannot be read.
    """
    tool = QueryTool(database_url, tables)
    for task in tasks:
        if task.sql and task.reference:
            episode = gold_episode(replace(task, sql=_found_by_hint(task, tool) or task.sql), tool)
            for query in episode.events:
                if not query.result.ok:
                    seen = f"the gold SQL of {task.id} fails: {query.result.error}"
                    raise AgentError(f"{seen}; is DATABASE_URL the right database?")
            yield Conversation(episode.messages, [True] * episode.turns, (TOOL,))


def _found_by_hint(task: SqlTask, tool: QueryTool) -> tuple[str, ...]:
    """Return two statements: for the name in the question, and for the one that the hint gives.

    The gold statement searches for the part that both names share. Whoever reads only the question
    cannot know which part that is, and would learn to guess. Empty if the hint does not help.
    """
    search = SEARCH.fullmatch(task.sql[0])
    if search is None or search["table"] not in NAME_COLUMN or len(task.names) != 2:
        return ()
    right, called = task.names
    if right in task.question or called not in task.question:
        return ()
    column = NAME_COLUMN[search["table"]]
    statements = []
    for name in (called, right):
        quoted = name.replace("'", "''")
        statements.append(f"{search['fields']} WHERE {column} = '{quoted}'")
    result = tool.run(statements[0])
    helps = result.ok and not result.rows and right in result.hint
    return tuple(statements) if helps else ()


def query_in(episode: Episode, sql: str, tool: QueryTool) -> QueryResult:
    query = Query.run(sql, tool)
    result = query.result
    number = f"call-{len(episode.events)}"
    function = {"name": TOOL_NAME, "arguments": json.dumps({"sql": sql}, ensure_ascii=False)}
    call = {"id": number, "type": "function", "function": function}
    episode.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    episode.messages.append({"role": "tool", "tool_call_id": number, "content": result.to_json()})
    episode.events.append(query)
    episode.turns += 1
    return result


def answer_in(episode: Episode, answer: str) -> Episode:
    """End an episode with an answer, or without one, and return it."""
    episode.messages.append({"role": "assistant", "content": answer})
    episode.turns += 1
    episode.answer = answer or None
    episode.stop_reason = "answered" if answer else "no_answer"
    return episode
