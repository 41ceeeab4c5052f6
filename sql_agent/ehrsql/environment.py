"""The SQL agent on EHRSQL: text-to-SQL, scored by what the last statement returns.

environment = EhrsqlEnvironment(folder)                 # of sql_agent/ehrsql/questions.py
episode = await environment.play(task, policy)
reward = await environment.score(task, episode)         # 1: the benchmark's own comparison holds

A policy queries as often as its turns allow, then answers in words. What it hands in is the last
statement that ran, or nothing where its answer says that the database has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from episodes.agent import Environment, KnownEpisodes, Record
from episodes.episode import Episode, Policy, Task
from episodes.tool_loop import Tool, play_with_tools
from scoring.rubric import Reward
from sql_agent import facts
from sql_agent.ehrsql.questions import WHOLE, DrawnSet
from sql_agent.judge.nothing import abstains
from sql_agent.prompts import TOOL_NAME, first_messages, table_lines, tool_spec
from sql_agent.reward import Query
from sql_agent.task import own
from sql_agent.template_agent import answer_in, query_in
from sql_agent.threads import in_thread
from tools.sql.query import QueryTool

NO_ANSWER = "null"
TOOL = tool_spec(
    TOOL_NAME,
    "Run one read-only SELECT statement in SQLite's dialect and return JSON; after an error, write "
    "the statement anew.",
    sql="one SELECT statement",
)
PROMPT = """You answer questions about a hospital's database by querying it.
The result of the last statement that you run is taken as your answer; then say it in one sentence.
If the database cannot answer the question, reply with: null
The current time is '{now}'. All texts in the database are in lower case.
Normal ranges: temperature 35.5 to 38.1, sao2 95 to 100, heart rate 60 to 100,
respiration 12 to 18, systolic bp 90 to 120, diastolic bp 60 to 90, mean bp 60 to 110.
Tables:
{tables}"""


class EhrsqlKnown(KnownEpisodes):
    """Gold and baselines; `checklist` counts the rows of the table that the question
    names first.
    """

    def __init__(self, tool: QueryTool, prompt: str) -> None:
        self.tool = tool
        self.prompt = prompt

    async def gold(self, task: Task) -> Episode | None:
        statements = own(task).sql
        return await in_thread(self._played, task, *statements[:1])

    async def baseline(self, name: str, task: Task, commonest: str) -> Episode:
        if name != "checklist":
            return await in_thread(self._played, task)
        return await in_thread(self._played, task, f"SELECT COUNT(*) FROM {self._named(task)}")

    def _played(self, task: Task, statement: str = "") -> Episode:
        episode = Episode(messages=list(first_messages(task.question, self.prompt)))
        if not statement:
            return answer_in(episode, NO_ANSWER)
        result = query_in(episode, statement, self.tool)
        return answer_in(episode, f"The result has {result.count} rows.")

    def _named(self, task: Task) -> str:
        """Return the table whose name shares most with a word of the question."""
        tables = sorted(self.tool.allowed_tables)
        words = task.question.lower().split()
        return max(
            tables,
            key=lambda table: max((len(word) for word in words if word[:5] in table), default=0),
        )


class EhrsqlEnvironment(Environment):
    """Plays and scores on a drawn database. Raises UsageError: the folder was not prepared."""

    def __init__(self, folder: Path) -> None:
        self.drawn = DrawnSet.read(folder)
        self.tool = self.drawn.tool()
        self.whole = self.drawn.tool(WHOLE)
        self.prompt = PROMPT.format(now=self.drawn.version.now, tables=_tables(self.tool))
        self.known = EhrsqlKnown(self.tool, self.prompt)

    async def play(self, task: Task, policy: Policy) -> Episode:
        queries: list[Query] = []

        async def query(sql: str) -> str:
            statement = self.drawn.version.as_run(sql)
            result = await in_thread(self.tool.run, statement)
            queries.append(Query(statement, result, self.tool.allowed_tables))
            return str(result.to_json())

        episode = await play_with_tools(policy, self.prompt, task.question, [Tool(TOOL, query)])
        episode.events = queries
        return episode

    async def score(self, task: Task, episode: Episode) -> Reward:
        gold = own(task).sql
        if not episode.answer:
            right = False
        elif not gold:
            right = gives_none(episode)
        else:
            right = await in_thread(self._matches, episode, gold[0])
        counters: dict[str, float] = {
            "sql_calls": len(episode.events),
            "sql_ok": sum(query.result.ok for query in episode.events),
        }
        score = float(right)
        return Reward(score, {"execution": score}, score=score, counters=counters)

    def _matches(self, episode: Episode, gold: str) -> bool:
        ran = [query.sql for query in episode.events if query.result.ok]
        if gives_none(episode) or not ran:
            return False
        found, wanted = self.whole.run(ran[-1]), self.whole.run(gold)
        whole = found.ok and found.count == len(found.rows)
        answer = self.drawn.version.answer
        return whole and answer(found.rows) == answer(wanted.rows)

    def facts(self, task: Task, episode: Episode) -> Mapping[str, float | None]:
        gold = own(task).sql
        right = bool(gold and episode.answer) and self._matches(episode, gold[0])
        return {
            "execution_accuracy": float(right) if gold else None,
            "evidence_recall": None,
            "queried": float(bool(episode.events)),
        }

    def record(self, task: Task, episode: Episode) -> Record:
        return facts.record_of(own(task), episode) | {
            "checks": {},
            "unanswerable": not own(task).sql,
            "abstained": gives_none(episode),
        }

    def description(self) -> dict[str, Any]:
        return {"benchmark": self.drawn.version.name, "drawn": self.drawn.folder.name}


def gives_none(episode: Episode) -> bool:
    """Return whether the answer says that the database has none."""
    answer = (episode.answer or "").strip().strip("'\"`.").lower()
    return answer == NO_ANSWER or abstains(answer)


def _tables(tool: QueryTool) -> str:
    database = tool.database()
    columns = {
        table: [column.name for column in database.columns(table)]
        for table in sorted(tool.allowed_tables)
    }
    return "\n".join(table_lines(columns))
