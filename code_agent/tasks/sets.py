"""How each of MedAgentGym's sets reads a row: question, answer and judge."""

import ast
import re
from abc import abstractmethod
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from code_agent.actions import HERE, placed
from code_agent.graders import Gold
from code_agent.judging import ByOutput, ByPredictions, ByTests, Check
from code_agent.settings import CodeSettings
from code_agent.task import CodeTask
from code_agent.tasks.gym_set import MedAgentGymSet
from code_agent.tasks.medagentbench import MedAgentBench
from code_agent.tasks.sql_answers import gold_of_query
from common.settings import load_settings
from episodes.agent import Row

MISSING = ("none", "nan", "nat", "null", "<na>")
POWER_ROOM = 0.01  # tolerance of a statistical power, relative to its value
STEPS = "Answer the question by a program; leave the answer in the variable `answer`."


class QuerySet(MedAgentGymSet):
    """Questions answered by the result of a query."""

    def read_row(self, row: Row) -> dict[str, Any]:
        return {
            "question": row["question"],
            "reference": ", ".join(map(str, row["answer"])),
            "task_type": row.get("tag") or self.name,
            "difficulty": row.get("importance") or "unknown",
            "gold": gold_of_query(row["query"], row["answer"]),
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
        return {
            "question": f"{row.get('seed_question') or ''} {row['question']}".strip(),
            "reference": ", ".join(map(str, answer)),
            "gold": gold_of_query(query, answer),
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
        gold = Gold("text", truth)  # weeks and days
        if date := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", truth):
            month, day, year = map(int, date.groups())
            gold = Gold("date", f"{year:04}-{month:02}-{day:02}")
        else:
            with suppress(ValueError):
                limits = [float(str(row[name])) for name in ("Lower Limit", "Upper Limit")]
                gold = Gold("number", float(truth), lower=min(limits), upper=max(limits))
        return {
            "question": f"{row['Question']} {STEPS}",
            "note": row["Patient Note"],
            "reference": truth,
            "task_type": row["Calculator Name"],
            "gold": gold,
        }

    def score(self, task: CodeTask, answer: str) -> float:
        """Score an answer, also in the set's form of a day (2/8/2021) or of weeks and days."""
        if _unquoted(answer) == _unquoted(task.reference):
            return 1.0
        return super().score(task, answer)


def _unquoted(text: str) -> str:
    plain = re.sub(r"[\s'\"]", "", text).casefold()
    return re.sub(r"\b0+(?=\d+/|\d{1,2}/\d{4}$)", "", plain) if "/" in plain else plain


class NPowerAI(MedAgentGymSet):
    """A whole sample size, or a power within a hundredth of its value."""

    name = "npowerai"

    def read_row(self, row: Row) -> dict[str, Any]:
        answer = float(row["answer"])
        target = row["estimate_target"]
        if target not in ("size", "power"):
            raise ValueError(f"estimate_target is {target!r}, expected size or power")
        near = Gold("number", answer, tolerance=abs(answer) * POWER_ROOM)
        return {
            "question": f"{row['question']} {STEPS}",
            "reference": str(row["answer"]),
            "task_type": row["task_type"],
            "gold": Gold("integer", int(row["answer"])) if target == "size" else near,
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

    def check(self, task: CodeTask) -> Check:
        return ByOutput(task.program)

    def unusable(self, task: CodeTask) -> str:
        found = re.findall(r"^(?:import|from)\s+([A-Za-z_]\w*)", task.context, re.MULTILINE)
        absent = sorted({name for name in found if find_spec(name) is None})
        return f"needs the packages {', '.join(absent)}" if absent else ""


class BioDSBench(MedAgentGymSet):
    """Values of variables, checked by the row's tests."""

    name = "biodsbench"
    answered = False
    mounted: ClassVar[str] = "/workdir/"  # where the rows say that the tables are

    def read_row(self, row: Row) -> dict[str, Any]:
        histories = row.get("code_histories") or ()
        if isinstance(histories, str):
            histories = ast.literal_eval(histories) or ()
        earlier = "".join(map(str, histories))
        program = f"{earlier}\n{row['reference_answer']}"
        begun = f"These programs ran before yours:\n{earlier}\n" if earlier.strip() else ""
        named = re.findall(rf"{self.mounted}([\w.+-]+)", f"{row['dataframes']}\n{program}")
        return {
            "question": row["queries"],
            "note": f"{row['dataframes']}{begun}".replace(self.mounted, "/data/"),
            "reference": row["test_cases"],
            "task_type": str(row["study_ids"]),
            "program": program.replace(self.mounted, "/data/"),
            "files": tuple(sorted(set(named))),
        }

    def check(self, task: CodeTask) -> Check:
        return ByTests(task.reference)

    def visible(self, task: CodeTask) -> list[Path]:
        return [path for path in self._files(task) if path.is_file()]

    def unusable(self, task: CodeTask) -> str:
        return without(*self._files(task))

    def _files(self, task: CodeTask) -> list[Path]:
        return [self.place / task.task_type / name for name in task.files]


def without(*files: Path) -> str:
    """Name the missing files, or return ""."""
    absent = [str(path) for path in files if not path.is_file()]
    return f"there is no {', '.join(absent)}" if absent else ""


class Predictions(MedAgentGymSet):
    """A model to train. The task states the time and memory of a program."""

    answered = False

    def __init__(self, data_path: Path | str | None = None, mode: str = "test") -> None:
        super().__init__(data_path, mode)
        settings = load_settings().of(CodeSettings)
        self.overview = self.overview.format(
            seconds=settings.sandbox_seconds, memory=settings.sandbox_memory
        )

    def success_above(self, task: CodeTask) -> float:
        return self.check(task).commonest()

    @abstractmethod
    def check(self, task: CodeTask) -> ByPredictions: ...


class EHRShot(Predictions):
    name = "ehrshot"

    def read_row(self, row: Row) -> dict[str, Any]:
        return {
            "question": row["task_description"],
            "reference": "accuracy",
            "task_type": row["task_name"],
        }

    def check(self, task: CodeTask) -> ByPredictions:
        return ByPredictions(self._labels(task, "test"), ("patient_id",), "value")

    def visible(self, task: CodeTask) -> list[Path]:
        labels = [self._labels(task, "train"), self._labels(task, "val")]
        return [*self.tables(), *filter(Path.is_file, labels)]

    def unusable(self, task: CodeTask) -> str:
        labels = without(self._labels(task, "train"), self._labels(task, "test"))
        return super().unusable(task) or labels

    def _labels(self, task: CodeTask, part: str) -> Path:
        return self.place / task.task_type / f"{part}_labels.csv"


class MimicExtract(Predictions):
    """Accuracy. Other metrics cannot be computed from labels."""

    name = "mimic_extract"

    def read_row(self, row: Row) -> dict[str, Any]:
        return {
            "question": row["task_description"],
            "reference": f"ACC; a {row['model']} had {row['performance']['ACC']:.3f}",
            "task_type": row["task_name"],
            "files": (row["feature_label_directory"].removeprefix("./"),),
        }

    def check(self, task: CodeTask) -> ByPredictions:
        ids: tuple[str, ...] = ("subject_id",)
        label = task.task_type
        if task.task_type in ("vasopressor", "ventilation"):
            ids = ("subject_id", "6_hour_window_id")
            label = "intervention_category"
        return ByPredictions(self._labels(task, "test"), ids, label)

    def visible(self, task: CodeTask) -> list[Path]:
        features = [self.place / task.files[0] / name for name in self.known["features"]]
        labels = [self._labels(task, "train"), self._labels(task, "val")]
        return list(filter(Path.is_file, [*features, *labels]))

    def unusable(self, task: CodeTask) -> str:
        first = self.place / task.files[0] / self.known["features"][0]
        return without(first, self._labels(task, "train"), self._labels(task, "test"))

    def _labels(self, task: CodeTask, part: str) -> Path:
        return self.place / task.files[0] / f"{part}_{task.task_type}_labels.csv"


REFERENCE: dict[str, type[MedAgentGymSet]] = {
    each.name: each
    for each in (
        *(MimicIII, EICU, TREQS, MedCalcBench, MedAgentBench, BioCoder),
        *(BioDSBench, EHRShot, EHRSeqSQL, EHRCon, NPowerAI, MimicExtract),
    )
}
