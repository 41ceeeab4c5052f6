"""The SQL agent on EHRSQL: text-to-SQL, scored by the result of the last statement.

The policy hands in the last statement that ran, or nothing if it answers that data are missing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from episodes.agent import Environment, Record
from episodes.episode import Conversation, Episode, Policy, Task
from scoring.rubric import Reward
from sql_agent import facts
from sql_agent.ehrsql.published import TEXTS
from sql_agent.ehrsql.questions import WHOLE, PreparedSet
from sql_agent.environment import in_thread, play_with_queries
from sql_agent.gold_episodes import answer_in, query_in
from sql_agent.judge.nothing import honesty
from sql_agent.prompts import TOOL_NAME, first_messages, table_lines, tool_spec
from sql_agent.reward import Query
from sql_agent.task import SqlTask, own

NO_ANSWER = "null"
# Answers that are `null`, and whole sentences that say so of the question
NULL = re.compile(
    rf"\W*(?:(?:(?:the )?(?:final )?answer|答案)\W*(?:(?:is|是|为)\W*)?)?{NO_ANSWER}\W*",
    re.IGNORECASE,
)
NULL_BEHIND = re.compile(rf"\W+(?:so )?{NO_ANSWER}\W*$", re.IGNORECASE)
REFUSAL = re.compile("".join(TEXTS["refusal"]), re.IGNORECASE)
TOOL = tool_spec(
    TOOL_NAME,
    "Run one read-only SELECT statement in SQLite's dialect and return JSON; after an error, write "
    "the statement anew.",
    sql="one SELECT statement",
)


class EhrsqlEnvironment(Environment):
    """Plays and scores on the database of a prepared set. Raises UsageError: it was not prepared."""

    def __init__(self, folder: Path) -> None:
        self.set = PreparedSet.read(folder)
        self.tool = self.set.tool()
        self.whole = self.set.tool(WHOLE)
        columns = {}
        for table in sorted(self.tool.allowed_tables):
            columns[table] = [column.name for column in self.tool.database().columns(table)]
        tables = "\n".join(table_lines(columns))
        self.prompt = TEXTS["prompt"].format(now=self.set.version.now, tables=tables)
        # Of episodes that are not recorded yet. Each is held, so that its id is no other's
        self._scores: dict[int, tuple[Episode, float]] = {}

    async def play(self, task: Task, policy: Policy) -> Episode:
        def run(sql: str) -> Query:
            return Query.run(self.set.version.as_run(sql), self.tool)

        return await play_with_queries(policy, self.prompt, task.question, TOOL, run)

    async def score(self, task: Task, episode: Episode) -> Reward:
        right = await in_thread(self._is_right, task, episode)
        score = float(right)
        self._scores[id(episode)] = episode, score
        counters: dict[str, float] = {
            "sql_calls": len(episode.events),
            "sql_ok": sum(query.result.ok for query in episode.events),
        }
        return Reward(score, {"execution": score}, score=score, counters=counters)

    def _is_right(self, task: Task, episode: Episode) -> bool:
        gold = own(task).sql
        if not gold or gives_none(task, episode):
            return not gold and gives_none(task, episode)
        ran = [query.sql for query in episode.events if query.result.ok]
        if not ran or not episode.answer:
            return False
        found = self.whole.run(ran[-1])
        wanted = self.whole.run(gold[0])
        whole = found.ok and wanted.ok and found.count == len(found.rows)
        answer = self.set.version.answer
        return whole and answer(found.rows) == answer(wanted.rows)

    async def gold(self, task: Task) -> Episode | None:
        return await in_thread(self.played, task, *own(task).sql[:1])

    def baselines(self, task: Task, commonest: str) -> Mapping[str, Episode]:
        """Return episodes that say `null`, which is the commonest answer, too."""
        silent = self.played(task)
        return {"at_once": silent, "commonest": silent}

    def played(self, task: Task, statement: str = "") -> Episode:
        """Return the episode that runs one statement, or says `null` without one."""
        episode = Episode(messages=list(first_messages(task.question, self.prompt)))
        if not statement:
            return answer_in(episode, NO_ANSWER)
        result = query_in(episode, statement, self.tool)
        return answer_in(episode, f"The result has {result.count} rows.")

    def record(self, task: Task, episode: Episode) -> Record:
        is_impossible = not own(task).sql
        _, right = self._scores.pop(id(episode), (episode, None))
        abstained = gives_none(task, episode)
        # As the benchmark counts: silence where there is an answer costs nothing, a wrong result
        # costs nothing in RS(0) and ten in RS(10)
        is_harmful = right == 0 and (is_impossible or not abstained)
        scored = {
            "execution_accuracy": None if is_impossible else right,
            "RS(0)": right,
            "RS(10)": -10.0 if is_harmful else right,
        }
        return facts.record_of(episode, scored, {}, is_impossible, abstained)

    def description(self) -> dict[str, Any]:
        kind = "drawn" if self.set.database.parent == self.set.folder else "database"
        return {"benchmark": self.set.version.name, kind: self.set.folder.name}


def ehrsql_conversations(folder: Path, tasks: Sequence[SqlTask]) -> Iterable[Conversation]:
    """Yield a gold episode for each task, to learn from."""
    environment = EhrsqlEnvironment(folder)
    for task in tasks:
        episode = environment.played(task, *task.sql[:1])
        yield Conversation(episode.messages, [True] * episode.turns, (TOOL,))


def gives_none(task: Task, episode: Episode) -> bool:
    """Return whether the answer is `null`, or says only that the database has nothing."""
    answer = (episode.answer or "").strip()
    reason = NULL_BEHIND.sub("", answer)
    none = NULL.fullmatch(answer) or REFUSAL.fullmatch(reason)
    return bool(none) or honesty(reason, task.question) == 1
