"""Make the lessons of the diagnosis agent's bundled tiny model: invented patients.

They are drawn after those of data/diagnosis, so that no record and no held-out wording of its files
is among them. In a right case the doctor orders what is recommended, what settles most conditions
first. A share is flawed the way hurried doctors are, which reinforcement learning can turn around.
`tiny_model_card.md` has the numbers.
"""

from collections.abc import Sequence
from random import Random

from conditions.condition_types import Condition
from conditions.orders import table_key
from conditions.table import load_tables
from diagnosis_agent.environment import ENOUGH, WHY
from diagnosis_agent.protocol import OWN, Conclusion, Order, read_reply
from diagnosis_agent.record_simulator import RecordSimulator, Result, ordered
from diagnosis_agent.task import DiagnosisTask, task_of
from episodes.agent import Lessons
from episodes.episode import Conversation
from episodes.prompts import load_prompts
from episodes.text_loop import Malformed
from recipes.doctors.bayes import posterior
from recipes.doctors.consultation_cases import ROWS
from recipes.doctors.diagnosis_cases import draw_diagnosis_cases
from recipes.doctors.results import read_result

BUDGETS = (6, 6, 6, 6, 4, 5, 7, 8)
# Orders beside the point.
ASIDE = (
    "fasting plasma glucose",
    "electrolytes",
    "renal function tests",
    "lipid panel",
    "coagulation screen",
)
# Percent of the right cases with a mistake before (shown, not learned): another suspicion, a
# malformed reply.
DETOURS = {"suspicion": 45, "malformed": 5}
FLAWS = {
    "at_once": 52,
    "aside": 10,
    "early": 12,
    "wrong_order": 4,
    "malformed": 4,
    "right": 18,
}  # percent of phase B

SIMULATOR = RecordSimulator()

Step = tuple[Order | str, bool]  # what the doctor says, and whether it is learned


def lessons(right: int, flawed: int, random: Random) -> Lessons:
    """Return `right` correct cases, some of them with a detour, and `flawed` ones."""
    drawn = draw_diagnosis_cases(load_tables(), {**ROWS, "lessons": right + flawed}, seed=0)[
        "lessons"
    ]
    tasks = [task_of({"id": str(number), **row}) for number, row in enumerate(drawn)]
    teacher = Teacher(random)
    mistakes = {**DETOURS, "right": 100 - sum(DETOURS.values())}
    kinds = random.choices([*mistakes], [*mistakes.values()], k=right)
    flaws = random.choices([*FLAWS], [*FLAWS.values()], k=flawed)
    return Lessons(
        [
            teacher.lesson(task, kind, False)
            for task, kind in zip(tasks[:right], kinds, strict=True)
        ],
        [teacher.lesson(task, flaw, True) for task, flaw in zip(tasks[right:], flaws, strict=True)],
        "",
        {
            f"share_{name}": share
            for name, share in ({"suspicion": DETOURS["suspicion"]} | FLAWS).items()
        },
    )


class Teacher:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.prompts = load_prompts(OWN)

    def lesson(self, task: DiagnosisTask, kind: str, learned: bool) -> Conversation:
        """Return a case with a mistake of the given kind, or "right". learned: the mistake, too."""
        turns = self.random.choice(BUDGETS)
        steps = self._steps(task, kind, learned)[: turns - 1]
        messages = self.prompts.opening(task.question, turns)
        results = list[Result]()
        for following, (step, _) in enumerate(steps, 2):
            reply = step if isinstance(step, str) else step.reply
            messages.append({"role": "assistant", "content": reply})
            if isinstance(step, Order):
                results.append(SIMULATOR.reply_to(task, step.examination, results))
                words = self.prompts.said(results[-1].shown, following, turns)
            else:
                malformed = read_reply(step)
                assert isinstance(malformed, Malformed), step
                words = self.prompts.wrong(malformed.problem, following, turns)
            messages.append({"role": "user", "content": words})
        guesses = kind in ("at_once", "aside", "early")
        diagnosis = best_match(task, results) if guesses else task.reference
        last = Conclusion(diagnosis, ENOUGH).reply
        messages.append({"role": "assistant", "content": last})
        return Conversation(messages, [*(learn for _, learn in steps), True])

    def _steps(self, task: DiagnosisTask, kind: str, learned: bool) -> list[Step]:
        orders = [Order(task.reference, name, WHY) for name in by_use(task)]
        right: list[Step] = [(order, True) for order in orders]
        aside = [
            Order(task.reference, name, WHY)
            for name in self.random.sample(ASIDE, 2)
            if name not in task.key
        ]
        if kind == "suspicion":
            at = self.random.choice((0, 0, 1))
            return [
                *right[:at],
                *((order, learned) for order in self._suspicions(task)),
                *right[at:],
            ]
        if kind == "malformed":
            at = self.random.randrange(len(right))
            return [*right[:at], (self._broken(orders[at].reply), learned), *right[at:]]
        if kind == "aside":
            return [(order, True) for order in aside[: self.random.randint(1, 2)]]
        if kind == "wrong_order":
            return [*((order, learned) for order in aside[:1]), *right]
        return {"at_once": [], "early": right[:1]}.get(kind, right)

    def _suspicions(self, task: DiagnosisTask) -> list[Order]:
        others = [
            one
            for name, one in load_tables().group(task.group or "").items()
            if name != task.condition
        ]
        wrong = self.random.sample(others, self.random.choice((1, 1, 2)))
        found = [Order(one.en, name, WHY) for one in wrong for name in self._settling(one, task)]
        return list({order.examination: order for order in found}.values())

    def _settling(self, condition: Condition, task: DiagnosisTask) -> list[str]:
        tables = load_tables()
        names = [tables.examinations[key].en for key in condition.recommended]
        fit = [name for name in names if name not in task.key and ordered(task, name)]
        return self.random.sample(fit, min(1, len(fit)))

    def _broken(self, reply: str) -> str:
        lines = reply.splitlines()
        del lines[self.random.randrange(len(lines))]
        return "\n".join(lines)


def by_use(task: DiagnosisTask) -> list[str]:
    """Return the recommended examinations, first those recommended for most conditions."""
    tables = load_tables()
    keys = [
        tables.examinations[key].en
        for one in tables.group(task.group or "").values()
        for key in one.recommended
    ]
    return sorted(task.key, key=lambda name: -keys.count(name))


def best_match(task: DiagnosisTask, results: Sequence[Result]) -> str:
    """Return the condition of the group that fits age, sex and results best."""
    assert task.sex is not None
    assert task.age is not None
    tables = load_tables()
    group = tables.group(task.group or "")
    texts = {key: one.text for one in results if (key := table_key(one.name))}
    read = {key: read_result(tables, key, text, task.sex, task.age) for key, text in texts.items()}
    chances = posterior(tables, group, {"age": task.age, "sex": task.sex, **read} if read else {})
    return group[max(chances, key=lambda name: chances[name])].en
