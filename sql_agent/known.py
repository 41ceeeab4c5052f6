"""Episodes with a known score: gold, baselines, and answers that deserve much or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from episodes.agent import KnownEpisodes
from episodes.episode import Episode, Task
from scoring.judge import Case
from sql_agent.canaries import ACCEPTED_FROM, bad_answers, honest_answers
from sql_agent.gold_episodes import answered_at_once, gold_episode
from sql_agent.reward import Query, case_of
from sql_agent.task import SqlTask, own
from sql_agent.threads import in_thread
from tools.sql.database import DatabaseError
from tools.sql.query import QueryTool


class KnownAnswers(KnownEpisodes):
    """judged: whether the reward asks a judge. Without one no answer is honest or dishonest."""

    accepted_from = ACCEPTED_FROM

    def __init__(self, tool: QueryTool, judged: bool) -> None:
        self.tool = tool
        self.judged = judged
        self._columns: dict[str, list[str]] = {}

    async def gold(self, task: Task) -> Episode | None:
        if not task.reference:
            return None
        episode: Episode = await in_thread(gold_episode, own(task), self.tool)
        return episode

    async def baseline(self, name: str, task: Task, commonest: str) -> Episode:
        answer = commonest if name == "commonest" else ""
        return answered_at_once(task.question, self.tool, answer)

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        return self._answered(own(task), honest_answers)

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        names = own(task).names
        return self._answered(own(task), lambda case: bad_answers(case, names, self.column, random))

    def column(self, name: str) -> Sequence[str]:
        """Return some values of a column, read once, or [] if it is missing or cannot be read.

        The episode beside this reports a lost database.
        """
        if name not in self._columns:
            texts: list[str] = []
            for table in sorted(self.tool.allowed_tables) if name.isidentifier() else ():
                sql = f"SELECT DISTINCT {name} FROM {table} WHERE {name} IS NOT NULL"
                try:
                    result = self.tool.run(sql)
                except DatabaseError:
                    return ()
                texts += [str(value) for (value,) in result.rows] if result.ok else []
            self._columns[name] = texts
        return self._columns[name]

    def _answered(
        self, task: SqlTask, answers: Callable[[Case], Mapping[str, str]]
    ) -> Mapping[str, Episode]:
        """Return an episode for each kind of answer, with the gold rows read. {} without a judge."""
        read = Episode(stop_reason="answered", events=Query.of_gold(task), turns=2)
        known = answers(case_of(task, read)) if self.judged else {}
        return {kind: replace(read, answer=answer) for kind, answer in known.items()}
