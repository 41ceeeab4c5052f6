"""Episodes without a model through the real tool: gold answers, and a template agent.

    gold_episode(task, tool)                                  # the ceiling: must score 1
    TemplateAgent(tool).episode("朵莎洛片怎么保存？")          # the floor a model has to beat

The template agent finds a known name and a column word in the question, and repeats that cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from episodes.episode import AgentError, Conversation, Episode
from sql_agent.prompts import COLUMNS, TOOL, TOOL_NAME, first_messages, system_prompt
from sql_agent.reward import Query
from sql_agent.tables import KEYWORDS, NAME_COLUMN
from sql_agent.task import SqlTask
from tools.sql.database import DatabaseError
from tools.sql.query import Limits, QueryResult, QueryTool

ABSTENTION = "数据库中没有找到相关信息。"
NOT_FOUND = "数据库中没有找到“{name}”的相关信息。"

# All names are read once and never shown, so the limits are wider than a policy's.
NAME_LIMITS = Limits(deadline=30.0, max_rows=1_000_000, max_chars=1_000_000_000)

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
    statements = tuple(
        f"{search['fields']} WHERE {column} = {_literal(name)}" for name in (called, right)
    )
    result = tool.run(statements[0])
    return statements if result.ok and not result.rows and right in result.hint else ()


def answered_at_once(question: str, tool: QueryTool, answer: str) -> Episode:
    """Return an episode without queries. Without an answer it says that it found nothing."""
    messages = list(first_messages(question, prompt_for(tool)))
    return answer_in(Episode(messages=messages), answer or ABSTENTION)


class TemplateAgent:
    """The template agent. It reads all names of the database once, when it is made."""

    def __init__(self, tool: QueryTool) -> None:
        self.tool = tool
        wide = QueryTool(tool.database_url, tool.allowed_tables, NAME_LIMITS, cache=False)
        tables = [table for table in NAME_COLUMN if table in tool.allowed_tables]
        if not tables:
            known = " and ".join(NAME_COLUMN)
            raise AgentError(f"the template knows the tables {known}, and may read neither of them")
        self.names = {table: _names(wide, table) for table in tables}

    def episode(self, question: str) -> Episode:
        """Play one question: one query, then the answer."""
        episode = Episode(messages=list(first_messages(question, prompt_for(self.tool))))
        # The table with the longest name that stands in the question, and the names of it there
        # (two at most).
        found = {table: _found(names, question) for table, names in self.names.items()}
        table = max(found, key=lambda table: max(map(len, found[table]), default=0))
        # The column of the first word that fits. If none fits, the first column of the table.
        meant = KEYWORDS[table]
        fitting = [
            column for column, words in meant.items() if any(word in question for word in words)
        ]
        names = found[table][:2]
        key = NAME_COLUMN[table]
        column = next(iter(fitting or meant))
        asked = names or [question]
        listed = ", ".join(map(_literal, asked))
        if len(asked) == 1:
            result = query_in(
                episode, f"SELECT {column} FROM {table} WHERE {key} = {listed}", self.tool
            )
            cells = [(asked[0], cell) for (cell,) in result.rows]
        else:
            result = query_in(
                episode, f"SELECT {key}, {column} FROM {table} WHERE {key} IN ({listed})", self.tool
            )
            cells = [(name, cell) for name, cell in result.rows]
        answer = "；".join(f"{name}：{cell}" for name, cell in cells if cell not in (None, ""))
        return answer_in(
            episode, answer or (NOT_FOUND.format(name=names[0]) if names else ABSTENTION)
        )


def _literal(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))


def _names(tool: QueryTool, table: str) -> list[str]:
    column = NAME_COLUMN[table]
    result = tool.run(f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL")
    if not result.ok:
        raise DatabaseError(f"the names of {table} cannot be read: {result.error}")
    return [str(name) for (name,) in result.rows if str(name).strip()]


def _found(names: Sequence[str], question: str) -> list[str]:
    """Return the names in the question, longest first, without names inside others."""
    found: list[str] = []
    for name in sorted((name for name in names if name in question), key=len, reverse=True):
        if not any(name in longer for longer in found):
            found.append(name)
    return found


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
