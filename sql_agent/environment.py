"""The SQL agent's episodes in a process: the database's tool, the judge, the reward."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from episodes.agent import Answer, Environment, Record
from episodes.episode import Episode, Policy, ServiceError, Task, ToolSpec
from episodes.outcomes import EpisodeError
from episodes.tool_loop import Tool, play_with_tools
from scoring.judge import Case, Judge, choose_judge, identity_of, why_unusable
from scoring.rubric import Reward, Rubric
from sql_agent import facts
from sql_agent.canaries import NOTHING_FOUND, bad_answers, honest_answers
from sql_agent.gold_episodes import gold_episode, prompt_for
from sql_agent.judge.nothing import abstains
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.judge_words import WORDS
from sql_agent.prompts import COLUMNS, PROMPT_VERSION, TOOL
from sql_agent.reward import (
    Query,
    case_of,
    is_unanswerable,
    rubric_from,
    score_episode,
    term_values,
)
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask, own
from tools.sql.errors import DatabaseError, MachineTooSlow
from tools.sql.query import QueryTool


async def in_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call of the database, beside which other episodes go on.

    Raises EpisodeError: the database failed, or the machine was too slow for it.
    """
    try:
        return await asyncio.to_thread(call, *arguments)
    except MachineTooSlow as error:
        raise EpisodeError("machine_too_slow", str(error)) from error
    except DatabaseError as error:
        raise EpisodeError("database_error", str(error)) from error


async def play_with_queries(
    policy: Policy, prompt: str, question: str, spec: ToolSpec, run: Callable[[str], Query]
) -> Episode:
    """Play an episode whose events are the queries that the policy ran."""
    queries: list[Query] = []

    async def query(sql: str) -> str:
        made: Query = await in_thread(run, sql)
        queries.append(made)
        return made.result.to_json()

    episode = await play_with_tools(policy, prompt, question, [Tool(spec, query)])
    episode.events = queries
    return episode


class SqlEnvironment(Environment):
    """Plays and scores. Raises UsageError: REWARD_TERMS or REWARD_SCALE is unusable.

    evaluating: the answer is judged even if the reward does not need it, and no result is kept: a
    served agent tells of now. Without a judge no answer is honest or dishonest.
    """

    def __init__(self, settings: SqlSettings, evaluating: bool = False) -> None:
        self.settings = settings
        self.tool = QueryTool(settings.database_url, settings.tables, cache=not evaluating)
        self.judge: Judge = choose_judge(settings, WORDS, ReferenceJudge())
        self.rubric = rubric_from(settings)
        if evaluating and "judge" not in self.rubric.weights:
            self.rubric = Rubric({**self.rubric.weights, "judge": 1.0}, self.rubric.factors)
        self.highest = self.rubric.highest
        self.paid = not isinstance(self.judge, ReferenceJudge)
        self.is_judged = "judge" in self.rubric.names
        self._columns: dict[str, list[str]] = {}

    async def play(self, task: Task, policy: Policy) -> Episode:
        prompt = await in_thread(prompt_for, self.tool)
        run = partial(Query.run, tool=self.tool)
        return await play_with_queries(policy, prompt, task.question, TOOL, run)

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        return await self.play(SqlTask(id="asked", question=question), policy)

    async def score(self, task: Task, episode: Episode) -> Reward:
        return await score_episode(own(task), episode, self.judge, self.rubric)

    def record(self, task: Task, episode: Episode) -> Record:
        values = term_values(own(task), episode)
        scored = {
            "execution_accuracy": values.get("execution"),
            "evidence_recall": values.get("evidence_recall"),
        }
        abstained = abstains(episode.answer or "")
        return facts.record_of(episode, scored, values, is_unanswerable(own(task)), abstained)

    def description(self) -> dict[str, Any]:
        from sqlalchemy.engine import make_url

        tables = self.tool.allowed_tables
        found: dict[str, Any] = {
            "prompt_version": PROMPT_VERSION,
            "database": make_url(self.settings.database_url).render_as_string(hide_password=True),
            "judge": identity_of(self.judge),
            "terms": dict(self.rubric.weights),
            "factors": dict(self.rubric.factors),
        }
        if tables != {*COLUMNS}:
            found["tables"] = sorted(tables)
        if self.tool.excess:
            found["notes"] = [f"the database's account may {self.tool.excess}"]
        return found

    def names(self) -> Mapping[str, str]:
        database = self.tool.database()
        found = {}
        for table in sorted(self.tool.allowed_tables):
            for column in database.columns(table):
                if column.comment:
                    found[column.name] = column.comment
        return found

    async def gold(self, task: Task) -> Episode | None:
        return await in_thread(gold_episode, own(task), self.tool) if task.reference else None

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        return self._answered(own(task), honest_answers)

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        names = own(task).names
        return self._answered(own(task), lambda case: bad_answers(case, names, self.column, random))

    def baselines(self, task: Task, commonest: str) -> Mapping[str, Episode]:
        found = {}
        for name, answer in {"at_once": "", "commonest": commonest}.items():
            at_once = replace(own(task), sql=(), reference=answer or NOTHING_FOUND)
            found[name] = gold_episode(at_once, self.tool)
        return found

    def column(self, name: str) -> Sequence[str]:
        """Return some values of a column, read once, or [] if it is missing or cannot be read."""
        if name not in self._columns:
            texts: list[str] = []
            for table in sorted(self.tool.allowed_tables) if name.isidentifier() else ():
                sql = f"SELECT DISTINCT {name} FROM {table} WHERE {name} IS NOT NULL"
                try:
                    result = self.tool.run(sql)
                except DatabaseError:  # the episode beside this reports it
                    return ()
                texts += [str(value) for (value,) in result.rows] if result.ok else []
            self._columns[name] = texts
        return self._columns[name]

    def _answered(
        self, task: SqlTask, answers: Callable[[Case], Mapping[str, str]]
    ) -> Mapping[str, Episode]:
        """Return an episode for each kind of answer, with the gold rows read. {} without a judge."""
        read = Episode(stop_reason="answered", events=Query.of_gold(task), turns=2)
        known = answers(case_of(task, read)) if self.is_judged else {}
        return {kind: replace(read, answer=answer) for kind, answer in known.items()}

    async def check(self) -> None:
        self.tool.database()
        problem = self.is_judged and await why_unusable(self.judge, WORDS.known_case)
        if problem:
            raise ServiceError(
                f"{problem}; expected one for a known answer within "
                f"JUDGE_TIMEOUT={self.settings.judge_timeout:g} s. Start the judge, or set "
                "TEACHER_MODEL, TEACHER_BASE_URL and TEACHER_API_KEY, or REWARD_MODEL_URL and "
                "REWARD_SCALE, to one that answers; with none of them set the offline reference "
                "judge is used: it pays what is quoted; other words need TEACHER_MODEL"
            )
