"""What the SQL agent's episodes need in a process: the database's tool, the judge, the reward's
terms.

environment = SqlEnvironment(load_settings())
episode = await environment.play(task, policy)          # openai-agents calls `query_database_by_sql`
reward = await environment.score(task, episode)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from common.settings import Settings
from episodes.agent import Answer, Environment, Record
from episodes.episode import Episode, Policy, ServiceError, Task
from episodes.mcp_tools import McpTools
from episodes.outcomes import EpisodeError
from episodes.tool_loop import Tool, play_with_tools
from scoring.judge import Case, Judge, ReferenceJudge, choose_judge, why_unusable
from scoring.rubric import Reward, Rubric
from sql_agent import facts
from sql_agent.canaries import ACCEPTED_FROM, Canaries, honest_answers
from sql_agent.judge_words import WORDS
from sql_agent.prompts import COLUMNS, SCHEMA_TOOLS, TOOL
from sql_agent.reward import Query, case_of, rubric_from, score_episode
from sql_agent.task import SqlTask
from sql_agent.template_agent import TemplateAgent, answered_at_once, gold_episode, prompt_for
from tools.sql.database import DatabaseError, MachineTooSlow
from tools.sql.query import QueryTool, SchemaTools
from tools.sql.result import neutralise


class SqlEnvironment(Environment):
    """Plays and scores. `evaluating`: the answer is judged even if the reward does not need it.
    `mcp`: a file that names MCP servers, whose tools the policy has besides.

    Raises UsageError if REWARD_TERMS, REWARD_SCALE or the file cannot be used.
    """

    accepted_from = ACCEPTED_FROM
    ways_out = (
        "set TEACHER_MODEL (TEACHER_BASE_URL, TEACHER_API_KEY) to another judge; or empty answers that gold does not "
        "bear out and have them drafted (python -m data.convert FILE --draft-answers); or drop such rows"
    )

    def __init__(
        self, settings: Settings, evaluating: bool = False, mcp: Path | None = None
    ) -> None:
        self.settings = settings
        specs = (TOOL, *SCHEMA_TOOLS) if settings.database_tools == "schema" else (TOOL,)
        own = tuple(spec["function"]["name"] for spec in specs)
        self.servers = McpTools(mcp, neutralise, own) if mcp else None
        self.tool = QueryTool(settings.database_url, settings.tables)
        self.judge: Judge = choose_judge(settings, WORDS)
        self.paid = not isinstance(self.judge, ReferenceJudge)
        self.rubric = rubric_from(settings)
        if evaluating and "judge" not in self.rubric.weights:
            self.rubric = Rubric({**self.rubric.weights, "judge": 1.0}, self.rubric.factors)
        self.highest = self.rubric.highest
        self.canaries = Canaries(self._column)
        self._columns: dict[str, list[str]] = {}
        self._template: TemplateAgent | None = None

    async def play(self, task: Task, policy: Policy) -> Episode:
        queries: list[Query] = []
        prompt = await _in_thread(prompt_for, self.tool)
        further = await _in_thread(self.servers.tools) if self.servers else []
        tools = [*self._tools(queries), *further]
        episode = await play_with_tools(policy, prompt, task.question, tools)
        episode.events = queries
        return episode

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        return await self.play(SqlTask(id="asked", question=question), policy)

    def _tools(self, queries: list[Query]) -> list[Tool]:
        async def query(sql: str) -> str:
            result = await _in_thread(self.tool.run, sql)
            queries.append(Query(sql, result, self.tool.allowed_tables))
            return str(result.to_json())

        async def describe(name: str, **arguments: str) -> str:  # counts as a turn, not as a query
            return str(await _in_thread(getattr(SchemaTools(self.tool), name), *arguments.values()))

        specs = SCHEMA_TOOLS if self.settings.database_tools == "schema" else ()
        return [
            Tool(TOOL, query),
            *(Tool(spec, partial(describe, spec["function"]["name"])) for spec in specs),
        ]

    async def score(self, task: Task, episode: Episode) -> Reward:
        return await score_episode(_own(task), episode, self.judge, self.rubric)

    async def gold(self, task: Task) -> Episode | None:
        return await _in_thread(gold_episode, _own(task), self.tool) if task.reference else None

    async def baseline(self, name: str, task: Task, commonest: str) -> Episode:
        if name != "checklist":
            return answered_at_once(
                task.question, self.tool, commonest if name == "commonest" else ""
            )
        if self._template is None:
            self._template = await _in_thread(TemplateAgent, self.tool)
        return await _in_thread(self._template.episode, task.question)

    def bad(self, task: Task, random: Random) -> Episode | None:
        whole = [
            bad
            for kind, bad in self.dishonest(task, random).items()
            if kind not in self.accepted_from
        ]
        return random.choice(whole) if whole else None

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        return self._answered(_own(task), honest_answers)

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        own = _own(task)
        return self._answered(own, lambda case: self.canaries.answers(case, own.names, random))

    def _column(self, name: str) -> Sequence[str]:
        """Return some values of a column of the tables, read once; [] if there is no such column,
        or it cannot be read.

        If the database is gone there are no values: the episode that is played beside this reports
        it.
        """
        if name not in self._columns:
            texts: list[str] = []
            for table in sorted(self.tool.allowed_tables) if name.isidentifier() else ():
                try:
                    result = self.tool.run(
                        f"SELECT DISTINCT {name} FROM {table} WHERE {name} IS NOT NULL"
                    )
                except DatabaseError:
                    return ()
                texts += [str(value) for (value,) in result.rows] if result.ok else []
            self._columns[name] = texts
        return self._columns[name]

    def _answered(
        self, task: SqlTask, answers: Callable[[Case], Mapping[str, str]]
    ) -> Mapping[str, Episode]:
        """Return an episode that has read the gold rows for each kind of answer; {} if no judge is
        asked.
        """
        read = Episode(stop_reason="answered", events=Query.of_gold(task), turns=2)
        known = answers(case_of(task, read)) if "judge" in self.rubric.names else {}
        return {kind: replace(read, answer=answer) for kind, answer in known.items()}

    def facts(self, task: Task, episode: Episode) -> Mapping[str, float | None]:
        return facts.facts_of(_own(task), episode)

    def record(self, task: Task, episode: Episode) -> Record:
        return facts.record_of(_own(task), episode)

    def description(self) -> dict[str, Any]:
        from sqlalchemy.engine import make_url

        tables = self.tool.allowed_tables
        return {
            "tools": self.settings.database_tools,
            "database": make_url(self.settings.database_url).render_as_string(hide_password=True),
            "judge": self.settings.teacher_model if self.judge.name == "llm" else self.judge.name,
            "terms": dict(self.rubric.weights),
            "factors": dict(self.rubric.factors),
            **({} if tables == {*COLUMNS} else {"tables": sorted(tables)}),
            **({"mcp": self.servers.described()} if self.servers else {}),
            **(
                {"notes": [f"the database's account may {self.tool.excess}"]}
                if self.tool.excess
                else {}
            ),
        }

    def close(self) -> None:
        if self.servers:
            self.servers.close()

    async def check(self) -> None:
        self.tool.database()
        if self.servers:
            await _in_thread(self.servers.start)
        problem = (
            await why_unusable(self.judge, WORDS.known_case)
            if "judge" in self.rubric.names
            else None
        )
        if problem:
            raise ServiceError(
                f"{problem}; expected one for a known answer within JUDGE_TIMEOUT={self.settings.judge_timeout:g} s. "
                "Start the judge, or set TEACHER_MODEL, TEACHER_BASE_URL and TEACHER_API_KEY, or REWARD_MODEL_URL and "
                "REWARD_SCALE, to one that answers; with none of them set the offline "
                "reference judge is used: it pays what is quoted; other words need TEACHER_MODEL"
            )


def _own(task: Task) -> SqlTask:
    assert isinstance(task, SqlTask)
    return task


async def _in_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return await asyncio.to_thread(call, *arguments)
    except MachineTooSlow as error:
        raise EpisodeError("machine_too_slow", str(error)) from error
    except DatabaseError as error:
        raise EpisodeError("database_error", str(error)) from error
