"""How each of MedAgentGym's sets reads a row: question, answer and judge."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from code_agent.actions import HERE, EpisodeContext, doing_nothing, placed, program_of
from code_agent.graders import Gold
from code_agent.judging import Handed, output_of
from code_agent.task import CodeTask
from code_agent.tasks.gym_set import MedAgentGymSet
from code_agent.tasks.medagentbench import MedAgentBench
from code_agent.tasks.sql_answers import gold_of_query
from episodes.agent import Row
from episodes.outcomes import EpisodeError

MISSING = ("none", "nan", "nat", "null", "<na>")
POWER_ROOM = 0.01  # tolerance of a statistical power, relative to its value
STEPS = "Answer the question by a program; leave the answer in the variable `answer`."


class QuerySet(MedAgentGymSet):
    """Questions answered by the result of a query."""

    def read_row(self, row: Row) -> dict[str, Any]:
        gold = gold_of_query(row["query"], row["answer"])
        return {
            "question": row["question"],
            "reference": ", ".join(map(str, row["answer"])),
            "task_type": row.get("tag") or self.name,
            "difficulty": row.get("importance") or "unknown",
            "gold": gold,
            "sql": row["query"],
        }

    def score(self, task: CodeTask, answer: str) -> float:
        """Score an answer. None stands for an empty result, for which pandas has other names."""
        missing = task.reference in ("None", "") and answer.strip().lower() in MISSING
        return 1.0 if missing else super().score(task, answer)


class MimicIII(QuerySet):
    name = "mimic_iii"


class EICU(QuerySet):
    name = "eicu"


class TREQS(QuerySet):
    name = "treqs"


class EHRSeqSQL(MedAgentGymSet):
    """A question in a sequence. `ans` holds its answer, a list or a value."""

    name = "ehr_seqsql"

    def read_row(self, row: Row) -> dict[str, Any]:
        answer = row["ans"] if isinstance(row["ans"], list) else [row["ans"]]
        query = row.get("query") or row.get("sql") or ""
        question = f"{row.get('seed_question') or ''} {row['question']}".strip()
        gold = gold_of_query(query, answer)
        return {
            "question": question,
            "reference": ", ".join(map(str, answer)),
            "gold": gold,
            "sql": query,
        }


class EHRCon(MedAgentGymSet):
    """Whether a note and the tables contradict each other about an entity."""

    name = "ehrcon"

    def read_row(self, row: Row) -> dict[str, Any]:
        wrong = row["Has error"]
        if not isinstance(wrong, bool):
            raise TypeError(f"Has error is {wrong!r}, expected true or false")
        stay = str(row["Hospital admission"]).removesuffix(".0")
        entity = row["Medical entity"]
        question = (
            f"Do the notes and the tables of hospital admission {stay} contradict "
            f"each other about the medical entity {entity!r}? Answer True or False."
        )
        return {"question": question, "reference": str(wrong), "gold": Gold("boolean", wrong)}


class MedCalcBench(MedAgentGymSet):
    """A calculation about a note, with a lower and an upper limit."""

    name = "medcalcbench"

    def read_row(self, row: Row) -> dict[str, Any]:
        truth = str(row["Ground Truth Answer"]).strip()
        return {
            "question": f"{row['Question']} {STEPS}",
            "note": row["Patient Note"],
            "reference": truth,
            "task_type": row["Calculator Name"],
            "gold": calculated(truth, str(row["Lower Limit"]), str(row["Upper Limit"])),
        }

    def score(self, task: CodeTask, answer: str) -> float:
        """Score an answer, also in the set's form of a day (2/8/2021) or of weeks and days."""
        if _unquoted(answer) == _unquoted(task.reference):
            return 1.0
        return super().score(task, answer)


def _unquoted(text: str) -> str:
    plain = re.sub(r"[\s'\"]", "", text).casefold()
    return re.sub(r"\b0+(?=\d+/|\d{1,2}/\d{4}$)", "", plain) if "/" in plain else plain


def calculated(truth: str, lower: str, upper: str) -> Gold:
    """Return a number within its limits, a date (12/31/2001), or weeks and days as a text."""
    if date := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", truth):
        month, day, year = map(int, date.groups())
        return Gold("date", f"{year:04}-{month:02}-{day:02}")
    try:
        low, high = sorted((float(lower), float(upper)))
        return Gold("number", float(truth), lower=low, upper=high)
    except ValueError:
        return Gold("text", truth)


class NPowerAI(MedAgentGymSet):
    """A whole sample size, or a power within a hundredth of its value."""

    name = "npowerai"

    def read_row(self, row: Row) -> dict[str, Any]:
        answer = row["answer"]
        target = row["estimate_target"]
        if target not in ("size", "power"):
            raise ValueError(f"estimate_target is {target!r}, expected size or power")
        room = abs(float(answer)) * POWER_ROOM
        near = Gold("number", float(answer), lower=float(answer) - room, upper=float(answer) + room)
        return {
            "question": f"{row['question']} {STEPS}",
            "reference": str(answer),
            "task_type": row["task_type"],
            "gold": Gold("integer", int(answer)) if target == "size" else near,
        }


class BioCoder(MedAgentGymSet):
    """A function to write into a program, which must then print what the gold program prints."""

    name = "biocoder"
    answered = False

    def read_row(self, row: Row) -> dict[str, Any]:
        if HERE not in row["context"]:
            raise ValueError(f"context has no {HERE}")
        asked = f"{row['problem']}\nThe signature is: {row['signature']}"
        known = {"program": placed(row["context"], row["solution"]), "context": row["context"]}
        return {"question": asked, "reference": row["solution"], **known}

    async def worth(self, task: CodeTask, handed: Handed, context: EpisodeContext) -> float:
        wanted = await output_of(task.program, context)
        if not wanted:
            raise EpisodeError(
                "task_unusable", "the task's own program does not run here, or prints nothing"
            )
        if not handed.program:
            return 0.0
        found = await output_of(program_of(handed.program, context), context)
        return float(found.split() == wanted.split())

    async def problem(self, task: CodeTask, context: EpisodeContext) -> str:
        printed = await output_of(task.program, context)
        if not printed:
            return "its own program fails here, or prints nothing"
        if printed != await output_of(task.program, context):
            return "its own program prints something else each time"
        stub = doing_nothing(task.reference)
        if stub and printed == await output_of(placed(task.context, stub), context):
            return "a function that does nothing makes the program print the same"
        return ""

    def unusable(self, task: CodeTask) -> str:
        absent = missing_packages(task.context)
        return f"needs the packages {', '.join(absent)}" if absent else ""


def missing_packages(program: str) -> list[str]:
    """Return packages that the program imports at its top level and that are not installed here."""
    found = re.findall(r"^(?:import|from)\s+([A-Za-z_]\w*)", program, re.MULTILINE)
    return sorted({name for name in found if find_spec(name) is None})


# Judged by tests of a program's values, or by predictions over tables that need a licence
NOT_PLAYED = ("biodsbench", "ehrshot", "mimic_extract")
REFERENCE: dict[str, type[MedAgentGymSet]] = {
    each.name: each
    for each in (
        *(MimicIII, EICU, TREQS, MedCalcBench, MedAgentBench, BioCoder),
        *(EHRSeqSQL, EHRCon, NPowerAI),
    )
}
