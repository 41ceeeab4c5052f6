"""Make the lessons of the code agent's bundled tiny model: invented questions, played by rule.

Questions are worded as those of training. Some names are made up, so that the model learns to copy
unknown ones. Nothing is run: what a program prints is drawn by the kind of the answer, and the
policy hands that in. A share has flaws of hurried programmers, which reinforcement learning can
correct. `tiny_model_card.md` has the numbers.
"""

import json
import re
import string
from collections.abc import Mapping, Sequence
from random import Random
from string import Template
from typing import Any

from code_agent.actions import SAID
from code_agent.protocol import Action
from code_agent.rehearsal import Rehearsed, rehearse, submit
from code_agent.task import CodeTask
from code_agent.tasks import get_task_class
from common.toml import table_beside
from episodes.agent import Lessons, Row
from episodes.episode import Conversation
from recipes.hospital.hospital_questions import PREAMBLE, TEMPLATES

TABLE = table_beside(__file__)
SHARES = TABLE["shares"]
FLAWS = TABLE["flaws"]
SLIPS = TABLE["slips"]
WORDS = TABLE["words"]
BUDGETS = (4, 4, 4, 4, 2, 3, 5, 6)
CHARACTERS = string.ascii_lowercase + string.digits + " /.,-&()'\"\\"
NUMBERS = {
    "patient": (10_000, 99_999),
    "stay": (100_000, 199_999),
    "icustay": (100_000, 299_999),
    "year": (2100, 2105),
}


def lessons(rows: Sequence[Row], right: int, flawed: int, random: Random) -> Lessons:
    teacher = Teacher(rows, random)
    kinds = random.choices([*FLAWS], [*FLAWS.values()], k=flawed)
    return Lessons(
        [teacher.right() for _ in range(right)],
        [teacher.flawed(kind) for kind in kinds],
        CHARACTERS,
        {f"share_{name}": share for name, share in (SHARES | FLAWS).items()},
        apart=True,
    )


class Teacher:
    def __init__(self, rows: Sequence[Row], random: Random) -> None:
        self.random = random
        self.tasks = get_task_class("ehr_demo")()
        self.known = names_of(rows)
        self.templates = {name: one for name, one in TEMPLATES.items() if one["seen"]}

    def right(self) -> Conversation:
        """Return an episode that runs the gold program and hands in what it prints, now and then
        after a mistake that is not learned.
        """
        detour = self._happens("detour")
        return self._play(
            self.random.choice(("misspelt", "malformed")) if detour else "right", False
        )

    def flawed(self, flaw: str) -> Conversation:
        return self._play(flaw, True)

    def _play(self, flaw: str, learned: bool) -> Conversation:
        template = self.templates[self.random.choice([*self.templates])]
        task = self._task(template)
        printed = self._printed(template)
        steps = self._steps(task, flaw, printed)
        turns = max(len(steps), self.random.choice(BUDGETS))
        episode = rehearse(self.tasks, task, turns, steps)
        mistaken = flaw in ("misspelt", "malformed") and not learned
        if flaw == "malformed":
            _break(episode.messages, self.random)
        turns = episode.turns
        learn = [not (mistaken and at < turns - 2) for at in range(turns)]
        return Conversation(episode.messages, learn)

    def _steps(self, task: CodeTask, flaw: str, printed: str) -> list[Rehearsed]:
        end = Rehearsed(Action("submit"))
        run = self._run(task.program, printed)
        if flaw == "guess":
            return [Rehearsed(submit(printed))]
        if flaw == "wrong_program":
            return [self._run(self._slipped(task.program), printed), end]
        if flaw == "misspelt":
            return [self._misspelt(task.program), run, end]
        if flaw == "asks_first":
            asked = {"data_path": task.files[0], "info_type": "column_names"}
            return [
                Rehearsed(Action("request_info", asked), self._columns(task.files[0])),
                run,
                end,
            ]
        return [run, run, end] if flaw == "malformed" else [run, end]

    def _run(self, program: str, printed: str) -> Rehearsed:
        return Rehearsed(Action("validate_code", {"code": program}), printed)

    def _slipped(self, program: str) -> str:
        for slip in self.random.sample(SLIPS, len(SLIPS)):
            if slip["right"] in program:
                return program.replace(slip["right"], slip["wrong"], 1)
        return program

    def _misspelt(self, program: str) -> Rehearsed:
        attributes = [
            (name, "no_attribute") for name in re.findall(r"\b[a-z]\.([a-z]+_[a-z]+) ==", program)
        ]
        keys = [(name, "no_key") for name in re.findall(r', "([a-z_]+)"\]', program)]
        name, kind = self.random.choice(attributes or keys or [("pd", "no_attribute")])
        wrong = name.replace("_", "") if "_" in name else f"{name}s"
        code = program.replace(name, wrong)
        line, text = next((at, one) for at, one in enumerate(code.splitlines(), 1) if wrong in one)
        error = WORDS["misspelt_error"].format(
            line=line, code=text, error=WORDS[kind].format(name=wrong)
        )
        return Rehearsed(Action("validate_code", {"code": code}), error=error)

    def _columns(self, file: str) -> str:
        assert self.tasks.folder
        with (self.tasks.folder / file).open(encoding="utf-8") as table:
            return ", ".join(table.readline().strip().split(","))

    def _task(self, template: Mapping[str, Any]) -> CodeTask:
        slots = self._slots(template)
        program = f"{PREAMBLE}\n{Template(template['program'].strip()).substitute(slots)}"
        question = Template(self._hurried(self.random.choice(template["seen"]))).substitute(slots)
        files = tuple(re.findall(r"(\w+\.csv)", program))
        return CodeTask(
            id="lesson", question=question, task_set="ehr_demo", files=files, program=program
        )

    def _hurried(self, wording: str) -> str:
        """Return a wording, now and then without some words, so that others do not confuse the
        model.
        """
        if not self._happens("hurried"):
            return wording
        return " ".join(
            word for word in wording.split() if "$" in word or not self._happens("left_out")
        )

    def _happens(self, what: str) -> bool:
        return self.random.random() < SHARES[what] / 100

    def _slots(self, template: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {
            name
            for text in (template["program"], *template["seen"])
            for name in Template(text).get_identifiers()
        }
        return {name: self._value(name) for name in sorted(wanted)}

    def _value(self, slot: str) -> Any:
        if slot in NUMBERS:
            return self.random.randint(*NUMBERS[slot])
        if slot == "least":
            return self.random.randint(5, 60)
        made_up = self._happens("made_up") or slot not in self.known
        return self._name() if made_up else self.random.choice(self.known[slot])

    def _name(self) -> str:
        if self._happens("abbreviated"):
            return "".join(self.random.choices(string.ascii_lowercase, k=self.random.randint(2, 6)))
        words = [
            "".join(self._syllable() for _ in range(self.random.randint(1, 4)))
            for _ in range(self.random.randint(1, 3))
        ]
        if self.random.random() < 0.4:
            words.insert(self.random.randint(0, len(words)), self.random.choice(WORDS["extras"]))
        return self.random.choice((" ", " ", " ", "/", "-")).join(words)

    def _syllable(self) -> str:
        return "".join(self.random.choice(WORDS[part]) for part in ("onsets", "vowels", "codas"))

    def _printed(self, template: Mapping[str, Any]) -> str:
        kind = template["kind"]
        if kind in ("set", "list"):
            return str(
                [self._scalar(template["items"][0]) for _ in range(self.random.randint(1, 5))]
            )
        if kind == "table":
            return str(
                {self._name(): self.random.randint(1, 40) for _ in range(self.random.randint(1, 3))}
            )
        return str(self._scalar(kind))

    def _scalar(self, kind: str) -> Any:
        draw = self.random.randint
        drawn = {
            "integer": draw(0, 400),
            "number": round(self.random.uniform(0, 300), self.random.randint(0, 3)),
            "boolean": self.random.random() < 0.5,
            "date": f"{draw(2020, 2105)}-{draw(1, 12):02}-{draw(1, 28):02} 00:00:00",
        }
        return drawn.get(kind, self._name())


def names_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the names that questions of training ask about, by slot."""
    known: dict[str, set[str]] = {}
    for row in rows:
        template = TEMPLATES.get(row["template"])
        if template:
            for slot, value in slots_in(template, row["program"]).items():
                known.setdefault(slot, set()).add(value)
    return {slot: sorted(values) for slot, values in known.items() if slot not in NUMBERS}


def slots_in(template: Mapping[str, Any], program: str) -> dict[str, str]:
    """Return the texts of a program at the slots of its template."""
    pattern = ""
    seen = set[str]()
    for part in re.split(r"(\$\w+)", f"{PREAMBLE}\n{template['program'].strip()}"):
        name = part[1:]
        if not part.startswith("$"):
            pattern += re.escape(part)
        else:
            pattern += f"(?P={name})" if name in seen else f"(?P<{name}>.+?)"
            seen.add(name)
    found = re.fullmatch(pattern, program)
    return found.groupdict() if found else {}


def _break(messages: list[dict[str, Any]], random: Random) -> None:
    said = next(at for at, message in enumerate(messages) if message["role"] == "assistant")
    code = json.loads(messages[said]["content"])["params"]["code"]
    messages[said] = {
        "role": "assistant",
        "content": random.choice((code, f"```python\n{code}\n```")),
    }
    tail = messages[said + 1]["content"].rsplit("\nStep ", 1)[1]
    messages[said + 1] = {
        "role": "user",
        "content": f"{SAID['no_action'].format(detail='')}\nStep {tail}",
    }
