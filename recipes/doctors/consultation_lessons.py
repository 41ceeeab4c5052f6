"""Make the lessons of the consultation agent's bundled tiny model: invented patients.

They are drawn after those of data/consultation, so that no record and no held-out wording of its
files is among them. They say half of the facts in other wordings, with characters strewn in, so
that the model learns to find what distinguishes conditions in words that it has not read. A share
is flawed the way hurried doctors are, which reinforcement learning can turn around.
`tiny_model_card.md` has the numbers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from common.toml import table_beside
from conditions.condition_types import Phrase, Tables
from conditions.table import FOLDER, load_tables
from consultation_agent.protocol import OWN, Conclusion, Malformed, Question, read_reply
from consultation_agent.record_patient import Exchange, RecordPatient, question_for
from consultation_agent.task import ConsultationTask, task_of
from episodes.agent import Lessons
from episodes.episode import Conversation
from episodes.prompts import Prompts, load_prompts
from recipes.doctors.bayes import Value, posterior
from recipes.doctors.consultation_cases import ROWS, draw_cases

WORDINGS = table_beside(__file__)
FURTHER = table_beside(__file__, "lesson_wordings.toml")
HAN = re.compile("[\u4e00-\u9fff]")
ADVISED = 2  # items of advice, of four
BUDGETS = (6, 6, 6, 6, 2, 3, 4, 5, 7)
# Questions beside the point, unless the patient's case needs them.
ASIDE = ("habits", "age", "allergies", "medication", "severity", "sex")
# Percent: right consultations with a mistake that is mended (shown, not learned), what patients say
# by its clinical name, of the rest in a further wording, characters with a random one before them.
SHARES = {"detour": 20, "clinical": 15, "further": 55, "strewn": 12}
FLAWS = {
    "at_once": 54,
    "aside": 10,
    "early": 10,
    "wrong_order": 4,
    "malformed": 4,
    "right": 18,
}  # percent of phase B

Step = tuple[str, bool]  # a reply of the doctor's, and whether it is learned


def lessons(right: int, flawed: int, random: Random) -> Lessons:
    """Return `right` correct consultations and `flawed` ones with a mistake."""
    drawn = draw_cases(load_tables(), {**ROWS, "lessons": right + flawed}, seed=0)["lessons"]
    tasks = [task_of({"id": str(number), **row}) for number, row in enumerate(drawn)]
    teacher = Teacher(load_prompts(OWN), alphabet(), random)
    kinds = random.choices([*FLAWS], [*FLAWS.values()], k=flawed)
    return Lessons(
        [teacher.right(task) for task in tasks[:right]],
        [teacher.flawed(task, kind) for task, kind in zip(tasks[right:], kinds, strict=True)],
        teacher.characters,
        {f"share_{name}": share for name, share in (SHARES | FLAWS).items()} | {"advised": ADVISED},
    )


def alphabet() -> str:
    files = [FOLDER / f"{name}.toml" for name in ("phrases", "wordings", "complaints")]
    files.append(Path(__file__).with_name("talk.toml"))
    tables = [file.read_text(encoding="utf-8") for file in files]
    further = (text for _, texts in further_wordings(load_tables()) for text in texts)
    return "".join(sorted({*HAN.findall("".join((*tables, *further)))}))


def further_wordings(tables: Tables) -> Iterator[tuple[Phrase, list[str]]]:
    """Yield what patients may say, each with its wordings of lesson_wordings.toml."""
    for name, texts in FURTHER["complaints"].items():
        yield tables.complaints[name], texts
    for name, texts in FURTHER["symptoms"].items():
        yield tables.symptoms[name], texts
    for facet, values in FURTHER["facets"].items():
        for name, texts in values.items():
            yield tables.facets[facet].values[name], texts


class Teacher:
    def __init__(self, prompts: Prompts, characters: str, random: Random) -> None:
        self.prompts = prompts
        self.characters = characters
        self.random = random
        self.patient = RecordPatient()
        self.clinical = dict[str, list[str]]()
        self.further = dict[str, list[str]]()
        for phrase, texts in further_wordings(load_tables()):
            for text in (*phrase.lay, *phrase.longer):
                self.clinical[text] = [phrase.zh]
                self.further[text] = texts

    def right(self, task: ConsultationTask) -> Conversation:
        detour = self._happens("detour")
        return self._play(
            task, self.random.choice(("wrong_order", "malformed")) if detour else "right", False
        )

    def flawed(self, task: ConsultationTask, flaw: str) -> Conversation:
        return self._play(task, flaw, True)

    def _play(self, task: ConsultationTask, flaw: str, learned: bool) -> Conversation:
        turns = self.random.choice(BUDGETS)
        steps = self._steps(task, flaw, turns, learned)
        task = replace(
            task,
            question=self._said(task.question),
            words={k: self._said(v) for k, v in task.words.items()},
        )
        messages = self.prompts.opening(task.question, turns)
        asked = list[Exchange]()
        for turn, (reply, _) in enumerate(steps, 2):
            messages.append({"role": "assistant", "content": reply})
            if turn <= len(steps):
                messages.append(
                    {"role": "user", "content": self._answer(task, reply, asked, turn, turns)}
                )
        return Conversation(messages, [learn for _, learn in steps])

    def _steps(self, task: ConsultationTask, flaw: str, turns: int, learned: bool) -> list[Step]:
        """Return the doctor's replies, with as many questions before the last turn as the budget
        allows.
        """
        needed = list(task.distinguishing)
        aside = self.random.sample([item for item in ASIDE if item not in needed], 2)
        before = {"aside": aside[: self.random.randint(1, 2)], "wrong_order": aside[:1]}.get(
            flaw, []
        )[: turns - 1]
        asked = {"at_once": [], "aside": [], "early": needed[:1]}.get(flaw, needed)
        asked = asked[: turns - 1 - len(before) - (flaw == "malformed")]
        steps = [(self._question(item), learned) for item in before] + [
            (self._question(item), True) for item in asked
        ]
        steps.append((conclusion(task, asked).reply, True))
        if flaw == "malformed" and turns > 1:
            at = self.random.randrange(len(steps))
            steps.insert(at, (self._broken(steps[at][0]), learned))
        return steps

    def _said(self, text: str) -> str:
        if self._happens("clinical"):
            text = self._reworded(text, self.clinical)
        elif self._happens("further"):
            text = self._reworded(text, self.further)
        return "".join(self._strewn() + character for character in text)

    def _reworded(self, text: str, others: Mapping[str, Sequence[str]]) -> str:
        wording = max((known for known in others if known in text), key=len, default="")
        return text.replace(wording, self.random.choice(others[wording])) if wording else text

    def _happens(self, what: str) -> bool:
        return self.random.random() < SHARES[what] / 100

    def _strewn(self) -> str:
        return self.random.choice(self.characters) if self._happens("strewn") else ""

    def _question(self, item: str) -> str:
        symptom = load_tables().symptoms.get(item)
        other = WORDINGS["symptom"].format(word=symptom.ask[0]) if symptom else WORDINGS[item]
        return Question(self.random.choice((question_for(item), other))).reply

    def _broken(self, reply: str) -> str:
        bare = reply.removeprefix("<answer>").removesuffix("</answer>")
        return self.random.choice((bare, f"<answer>{bare[3:]}</answer>"))

    def _answer(
        self, task: ConsultationTask, reply: str, asked: list[Exchange], turn: int, turns: int
    ) -> str:
        said = read_reply(reply)
        if isinstance(said, Malformed):
            return self.prompts.wrong(said.problem, turn, turns)
        assert not isinstance(said, Conclusion), reply
        answer = self.patient.reply_to(task, said.text, asked)
        asked.append(Exchange(said.text, answer))
        return self.prompts.said(answer.text, turn, turns)


def conclusion(task: ConsultationTask, mentioned: Sequence[str]) -> Conclusion:
    """Return the conclusion that fits best to what was mentioned, with the first items of its
    advice: all of it would be a third longer.
    """
    best = best_match(task, mentioned)
    return Conclusion(best.diagnosis, "；".join(best.recommendation.split("；")[:ADVISED]))


def best_match(task: ConsultationTask, mentioned: Iterable[str]) -> Conclusion:
    """Return the condition of the complaint that fits best to what the patient mentioned."""
    tables = load_tables()
    group = tables.group(task.complaint)
    known = {item: value for item in mentioned if (value := _value(task, item)) is not None}
    chances = posterior(tables, group, known)
    likeliest = group[max(chances, key=lambda name: chances[name])]
    advice = "；".join(likeliest.advice_for(task.values.get("habits")))
    return Conclusion(likeliest.zh, advice.replace("*", ""))


def _value(task: ConsultationTask, item: str) -> Value | None:
    if item in load_tables().symptoms:
        return task.symptoms.get(item, False)
    if item in task.values:
        return task.values[item] if item in task.words else None
    return {"age": task.age, "sex": task.sex or None}.get(item)
