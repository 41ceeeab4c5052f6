"""How each of MedAgentGym's sets reads a row: question, answer and judge."""

import ast
import csv
import re
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from code_agent import judging
from code_agent.actions import HERE, EpisodeContext, placed
from code_agent.graders import MISSING, NUMBER, Gold
from code_agent.judging import Handed, Labels
from code_agent.settings import CodeSettings
from code_agent.task import CodeTask
from code_agent.tasks.gym_set import MedAgentGymSet
from code_agent.tasks.medagentbench import MedAgentBench
from code_agent.tasks.sql_answers import gold_of_query, tables_in
from common.settings import load_settings
from episodes.agent import Row
from episodes.outcomes import EpisodeError

POWER_ROOM = 0.01  # tolerance of a statistical power, relative to its value
WINDOW = "6_hour_window_id"  # of labels; predictions name it window_idx
WEEKS = re.compile(r"(\d+)(?:weeks?,?(?:and)?|,)(\d+)(?:days?)?")
MOUNTED = "/workdir/"  # where BioDSBench's rows say that the tables are


class QuerySet(MedAgentGymSet):
    """Questions answered by the result of a query."""

    def read_row(self, row: Row) -> dict[str, Any]:
        return {
            "reference": ", ".join(map(str, row["answer"])),
            "task_type": row.get("tag") or self.name,
            "difficulty": row.get("importance") or "unknown",
            "gold": gold_of_query(row["query"], row["answer"]),
            "sql": row["query"],
        }

    def unusable(self, task: CodeTask) -> str:
        if why := super().unusable(task):
            return why
        known = {Path(name).stem.lower() for name in self.shown}
        there = {path.stem.lower() for path in self.tables()}
        absent = sorted(tables_in(task.sql) & known - there)
        return f"{self.folder} lacks tables of its query: {', '.join(absent)}" if absent else ""

    def score(self, task: CodeTask, answer: str) -> float:
        """Score an answer. None, by any of its names, stands for an empty result, too."""
        missing = not task.reference and answer.strip().casefold() in MISSING
        return 1.0 if missing else super().score(task, answer)


class MimicIII(QuerySet):
    name = "mimic_iii"


class EICU(QuerySet):
    name = "eicu"


class TREQS(QuerySet):
    name = "treqs"


class EHRSeqSQL(QuerySet):
    """A question in a sequence. `ans` holds its answer, a list or a value."""

    name = "ehr_seqsql"

    def read_row(self, row: Row) -> dict[str, Any]:
        query = row.get("query") or row.get("sql") or ""
        answer = row["ans"] if isinstance(row["ans"], list) else [row["ans"]]
        question = f"{row.get('seed_question') or ''} {row['question'] or ''}".strip()
        return {"question": question, **super().read_row({"query": query, "answer": answer})}


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
        gold = Gold("text", truth)  # weeks and days
        if date := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", truth):
            month, day, year = map(int, date.groups())
            gold = Gold("date", f"{year:04}-{month:02}-{day:02}")
        elif NUMBER.fullmatch(truth):
            numbers = [truth, *(str(row[name]) for name in ("Lower Limit", "Upper Limit"))]
            value, *limits = [float(number.replace(",", "")) for number in numbers]
            gold = Gold("number", value, lower=min(limits), upper=max(limits))
        return {"reference": truth, "gold": gold}

    def score(self, task: CodeTask, answer: str) -> float:
        """Score an answer, also in the set's form of a day (2/8/2021) or of weeks and days."""
        span = _weeks(task.reference)
        is_span = span is not None and span == _weeks(answer)
        if is_span or _unquoted(answer) == _unquoted(task.reference):
            return 1.0
        return super().score(task, answer)


def _weeks(text: str) -> tuple[str, ...] | None:
    """Return the weeks and days of a text, as "14 weeks, 1 day" and (14, 1) name them."""
    found = WEEKS.fullmatch(_unquoted(text))
    return found.groups() if found else None


def _unquoted(text: str) -> str:
    """Return a text without quotes, brackets and spaces, except spaces between two numbers."""
    plain = re.sub(r"['\"()\[\]]", " ", text).strip().casefold()
    plain = re.sub(r"\s+", "", re.sub(r"(?<=\d)\s+(?=\d)", "_", plain))
    return re.sub(r"\b0+(?=\d+/|\d{1,2}/\d{4}$)", "", plain) if "/" in plain else plain


class NPowerAI(MedAgentGymSet):
    """A sample size, or a power within a hundredth of its value."""

    name = "npowerai"

    def read_row(self, row: Row) -> dict[str, Any]:
        answer = float(row["answer"])
        target = row["estimate_target"]
        if target == "power":
            return {"gold": Gold("number", answer, tolerance=abs(answer) * POWER_ROOM)}
        if target != "size":
            raise ValueError(f"estimate_target is {target!r}, expected size or power")
        is_whole = answer.is_integer()
        return {"gold": Gold("integer", int(answer)) if is_whole else Gold("number", answer)}


class BioCoder(MedAgentGymSet):
    """A function to write into a program, which must then print what the gold program prints."""

    name = "biocoder"
    answered = False

    def read_row(self, row: Row) -> dict[str, Any]:
        if HERE not in row["context"]:
            raise ValueError(f"context has no {HERE}")
        return {"program": placed(row["context"], row["solution"])}

    def unusable(self, task: CodeTask) -> str:
        found = re.findall(r"^(?:import|from)\s+([A-Za-z_]\w*)", task.context, re.MULTILINE)
        # What is loaded, such as __main__, may have no spec
        absent = sorted({name for name in found if name not in sys.modules and not find_spec(name)})
        return f"needs the packages {', '.join(absent)}" if absent else ""

    async def worth(self, task: CodeTask, handed: Handed, context: EpisodeContext) -> float:
        return float(await judging.prints_the_same(task.program, handed.program, context))


class BioDSBench(MedAgentGymSet):
    """Values of variables, checked by the row's tests."""

    name = "biodsbench"
    answered = False

    def read_row(self, row: Row) -> dict[str, Any]:
        histories = row.get("code_histories") or ()
        if isinstance(histories, str):
            histories = ast.literal_eval(histories) or ()
        earlier = "".join(map(str, histories))
        program = f"{earlier}\n{row['reference_answer']}"
        begun = f"These programs ran before yours:\n{earlier}\n" if earlier.strip() else ""
        named = re.findall(rf"{MOUNTED}([\w.+-]+)", f"{row['dataframes']}\n{program}")
        return {
            "note": f"{row['dataframes'] or ''}{begun}".replace(MOUNTED, "/data/"),
            "program": program.replace(MOUNTED, "/data/"),
            "files": tuple(sorted(set(named))),
        }

    def files(self, task: CodeTask) -> list[Path]:
        return [self.folder / task.task_type / name for name in task.files]

    def needed(self, task: CodeTask) -> list[Path]:
        return self.files(task)

    async def worth(self, task: CodeTask, handed: Handed, context: EpisodeContext) -> float:
        passed = await judging.passes_tests(task.reference, context)
        if not passed and (why := await judging.why_untelling(task, context)):
            raise EpisodeError("task_unusable", why)
        return float(passed)


class EHRShot(MedAgentGymSet):
    """A model to train, judged by accuracy. The task states the time and memory of a program."""

    name = "ehrshot"
    answered = False

    def __init__(self, data_path: Path | str | None = None, mode: str = "test") -> None:
        super().__init__(data_path, mode)
        settings = load_settings().of(CodeSettings)
        self.overview = self.overview.format(
            seconds=settings.sandbox_seconds, memory=settings.sandbox_memory
        )

    def file_of(self, task: CodeTask, part: str) -> Path:
        """Return the file with the labels of train, val or test."""
        return self.folder / self.known["labels"].format(task=task, part=part)

    def columns(self, task: CodeTask) -> tuple[tuple[str, ...], str]:
        """Return the columns that name a case, and the column of its label."""
        return ("patient_id",), "value"

    def files(self, task: CodeTask) -> list[Path]:
        return [*self.tables(), self.file_of(task, "train"), self.file_of(task, "val")]

    def needed(self, task: CodeTask) -> list[Path]:
        return [self.file_of(task, "train"), self.file_of(task, "test")]

    def unusable(self, task: CodeTask) -> str:
        if why := super().unusable(task):
            return why
        path = self.file_of(task, "test")
        with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
            there = next(csv.reader(file), [])
        ids, label = self.columns(task)
        missing = ", ".join(name for name in (*ids, label) if name not in there)
        return f"{path} has no {missing}; its columns are {', '.join(there)}" if missing else ""

    def wanted(self, task: CodeTask) -> Labels:
        return judging.read_labels(self.file_of(task, "test"), *self.columns(task))

    async def worth(self, task: CodeTask, handed: Handed, context: EpisodeContext) -> float:
        ids, _ = self.columns(task)
        asked = ["window_idx" if name == WINDOW else name for name in ids]
        wanted = self.wanted(task)
        return await judging.share_predicted(wanted, [*asked, "prediction"], context)

    def succeeds(self, task: CodeTask, worth: float) -> bool:
        """Return whether predictions are better than the commonest label for all, or all right."""
        labels = Counter(self.wanted(task).values())
        return worth >= 1 or worth > max(labels.values(), default=0) / max(1, labels.total())


class MimicExtract(EHRShot):
    """Accuracy too. The set's other metrics cannot be computed from labels."""

    name = "mimic_extract"

    def read_row(self, row: Row) -> dict[str, Any]:
        return {"files": (row["feature_label_directory"].removeprefix("./"),)}

    def columns(self, task: CodeTask) -> tuple[tuple[str, ...], str]:
        if task.task_type in ("vasopressor", "ventilation"):
            return ("subject_id", WINDOW), "intervention_category"
        return ("subject_id",), task.task_type

    def features(self, task: CodeTask) -> list[Path]:
        return [self.folder / task.files[0] / name for name in self.known["features"]]

    def files(self, task: CodeTask) -> list[Path]:
        return [*self.features(task), *super().files(task)]

    def needed(self, task: CodeTask) -> list[Path]:
        return [self.features(task)[0], *super().needed(task)]


REFERENCE: dict[str, type[MedAgentGymSet]] = {
    each.name: each
    for each in (
        *(MimicIII, EICU, TREQS, MedCalcBench, MedAgentBench, BioCoder),
        *(BioDSBench, EHRShot, EHRSeqSQL, EHRCon, NPowerAI, MimicExtract),
    )
}
