"""Cases without a model: gold, the baselines, and what known-bad ones are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conditions.bayes import posterior
from conditions.examination_results import read_result
from conditions.orders import table_key
from conditions.table import load_tables
from diagnosis_agent.protocol import Conclusion, Order, read_reply, spoken
from diagnosis_agent.record_simulator import RecordSimulator
from diagnosis_agent.reward import results_of
from diagnosis_agent.simulator import Exchange, Result
from diagnosis_agent.task import DiagnosisTask
from episodes import partner_agent
from episodes.episode import Episode
from episodes.prompts import Prompts
from episodes.text_loop import Malformed

WHY = "It tells the likely causes apart."
ENOUGH = "The results fit."
SIMULATOR = RecordSimulator()

Conclude = Callable[[Sequence[Result]], str | None]


def rehearse(
    task: DiagnosisTask,
    prompts: Prompts,
    turns: int,
    orders: Sequence[Order | str],
    conclude: Conclude,
) -> Episode:
    """Return an episode that orders as much as the budget allows before the last turn, then names a
    diagnosis if `conclude` returns one.

    An order that is a text is sent unchanged, as a malformed reply.
    """
    orders = orders[: turns - 1]

    def answer(number: int, episode: Episode) -> str:
        order = orders[number]
        if isinstance(order, str):
            malformed = read_reply(order)
            assert isinstance(malformed, Malformed), order
            episode.events.append(malformed)
            return prompts.wrong(malformed.problem, number + 2, turns)
        result = SIMULATOR.result_of(task, order.examination, results_of(episode))
        episode.events.append(Exchange(order, result))
        return prompts.said(shown(result), number + 2, turns)

    def concluded(episode: Episode) -> tuple[Conclusion, str] | None:
        diagnosis = conclude(results_of(episode))
        if not diagnosis:
            return None
        conclusion = Conclusion(diagnosis, ENOUGH)
        return conclusion, spoken(conclusion)

    replies = [order if isinstance(order, str) else spoken(order) for order in orders]
    opening = prompts.opening(task.question, turns)
    return partner_agent.rehearse(opening, replies, answer, concluded)


def shown(result: Result) -> str:
    """Return the text of a result that the policy reads."""
    return result.text if result.kind == "unavailable" else f"{result.name}: {result.text}"


def gold_orders(task: DiagnosisTask) -> list[Order]:
    return [Order(task.reference, name, WHY) for name in task.key]


def gold_episode(task: DiagnosisTask, prompts: Prompts, turns: int, diagnosis: str = "") -> Episode:
    """Order what is recommended, then name the gold diagnosis, or `diagnosis` as its name."""
    return rehearse(task, prompts, turns, gold_orders(task), lambda _: diagnosis or task.reference)


def baseline_episode(
    name: str, task: DiagnosisTask, prompts: Prompts, turns: int, commonest: str = ""
) -> Episode:
    """Return the episode of a baseline.

    "at_once" orders nothing. "checklist" orders what the record has, in its order. Both name what
    the tables then hold likeliest, the table's first of equals. "commonest" names `commonest`.
    """
    if name == "commonest":
        return rehearse(task, prompts, turns, [], lambda _: commonest or None)
    known = task.results if name == "checklist" else ()
    orders = [Order("not known yet", other, WHY) for other in known]
    return rehearse(task, prompts, turns, orders, lambda results: best_match(task, results))


def best_match(task: DiagnosisTask, results: Sequence[Result]) -> str | None:
    """Return the condition of the group that fits age, sex and results best, or None if the group is
    not in the tables.
    """
    tables = load_tables()
    group = tables.group(task.group or "")
    if not group or task.sex is None or task.age is None:
        return None
    texts = {key: one.text for one in results if (key := table_key(one.name))}
    read = {key: read_result(tables, key, text, task.sex, task.age) for key, text in texts.items()}
    chances = posterior(tables, group, {"age": task.age, "sex": task.sex, **read} if read else {})
    return group[max(chances, key=lambda name: chances[name])].en
