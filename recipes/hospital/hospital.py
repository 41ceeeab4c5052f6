"""An invented hospital: 2,000 patients and what was done with them, drawn by rule from one seed.

Tables and columns are named as those of MIMIC-III in lower case, so that questions about one carry
over to the other. Codes are ICD-9-CM's. Dependencies are kept simple: a patient has lasting
diagnoses and a new one at each stay, a diagnosis brings drugs and procedures, and two laboratory
values are watched through each stay. A few diagnoses show in them.
"""

import csv
import tomllib
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from common.terminal import watched

HERE = Path(__file__).resolve().parent
DATABASE = "hospital.db"  # beside the CSV files
PATIENTS = 2000
MOST = 15_000
_TABLE = tomllib.loads((HERE / "hospital.toml").read_text(encoding="utf-8"))
COLUMNS: dict[str, str] = _TABLE["columns"]
# Of admissions
FIRST = datetime(2100, 1, 1)
LAST = datetime(2105, 11, 30)
CHARGES = _TABLE["charges"]
SAID = _TABLE["said"]
UNITS = _TABLE["units"]
OLD = 65  # years, from which Medicare insures
DIED = "dead/expired"
Row = list[Any]


def words(name: str) -> list[dict[str, str]]:
    """Return the rows of one of the .tsv files: diagnoses, drugs, procedures, labs, items."""
    with (HERE / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def column_names(table: str) -> list[str]:
    return [column.split()[0] for column in COLUMNS[table].split(", ")]


def draw_hospital(seed: int = 0, patients: int = PATIENTS) -> dict[str, list[Row]]:
    """Return all rows by table. The same arguments give the same rows."""
    hospital = Hospital(seed)
    for subject in watched(
        sorted(hospital.random.sample(range(10_000, 100_000), patients)), "hospital", "patients"
    ):
        hospital.add_patient(subject)
    return hospital.tables


class Hospital:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.tables: dict[str, list[Row]] = {table: [] for table in COLUMNS}
        self.diagnoses = words("diagnoses")
        self.forms: dict[str, list[dict[str, str]]] = {}  # how a drug is given
        for form in words("drugs"):
            self.forms.setdefault(form["drug"], []).append(form)
        self.usual: dict[tuple[int, str], float] = {}  # values of a patient, by item
        self.labs = words("labs")
        self.items = words("items")
        self.weights = [1 / (rank + 6) for rank in range(len(self.diagnoses))]
        # Of stays, in hospital and in a unit
        self.numbers = iter(self.random.sample(range(100_000, 200_000), 40_000))
        for name in ("diagnoses", "procedures"):
            for row in words(name):
                self.add(f"d_icd_{name}", row["icd9_code"], row["short_title"], row["long_title"])
        for lab in self.labs:
            self.add("d_labitems", int(lab["itemid"]), lab["label"])
        for item in self.items:
            self.add("d_items", int(item["itemid"]), item["label"], item["linksto"])

    def add(self, table: str, *cells: Any) -> int:
        """Append a row and return its number in the table. What costs money is charged."""
        rows = self.tables[table]
        rows.append([len(rows) + 1, *cells])
        if table in CHARGES:
            when = next(cell for cell in cells if isinstance(cell, datetime))
            cost = round(self.random.uniform(*CHARGES[table]), 2)
            self.add("cost", *cells[:2], table, len(rows), when, cost)
        return len(rows)

    def drawn(self, shares: dict[str, int], without: str = "") -> str:
        left = {name: share for name, share in shares.items() if name != without}
        return self.random.choices(list(left), list(left.values()))[0]

    def between(self, start: datetime, end: datetime) -> datetime:
        return start + timedelta(
            minutes=self.random.randrange(int((end - start).total_seconds()) // 60 + 1)
        )

    def add_patient(self, subject: int) -> None:
        birth = datetime(
            self.random.randint(2010, 2081), self.random.randint(1, 12), self.random.randint(1, 28)
        )
        sex = self.drawn({"m": 52, "f": 48})
        count = self.random.choice((1, 1, 2))
        starts = sorted(
            self.between(FIRST, LAST)
            for _ in range(self.random.choices((1, 2, 3, 4), (72, 19, 6, 3))[0])
        )
        lasting = [self.drawn_diagnosis(sex, age(birth, starts[0])) for _ in range(count)]
        end = FIRST
        about = [self.drawn(SAID[name]) for name in ("language", "marital_status", "ethnicity")]
        for start in starts:
            if start > end:
                end = self.add_stay(subject, (sex, birth), start, lasting, about)
        died = end if self.random.random() < 0.08 else None
        if died:
            place = column_names("admissions").index("discharge_location")
            self.tables["admissions"][-1][place] = DIED
        self.add("patients", subject, sex, birth, died)

    def drawn_diagnosis(self, sex: str, years: int) -> dict[str, str]:
        while True:
            drawn = self.random.choices(self.diagnoses, self.weights)[0]
            if drawn["sex"] in ("any", sex) and years >= int(drawn["from_age"]):
                return drawn

    def add_stay(
        self,
        subject: int,
        person: tuple[str, datetime],
        start: datetime,
        lasting: list[Any],
        about: list[str],
    ) -> datetime:
        """Add one stay in hospital and return its end."""
        stay = next(self.numbers)
        end = start + timedelta(minutes=self.random.randint(900, 16_000))
        sex, birth = person
        years = age(birth, start)
        kind = self.drawn(SAID["admission_type"])
        barred = "emergency room" if kind == "elective" else ""
        said = [self.drawn(SAID["admission_location"], barred)]
        said.append(self.drawn(SAID["discharge_location"]))
        said.append(self.drawn(SAID["insurance"], "medicare" if years < OLD else ""))
        self.add("admissions", subject, stay, start, end, kind, *said, *about, years)
        new = self.drawn_diagnosis(sex, years)
        shown: dict[str, str] = {}  # the least and most that a laboratory finds, by item
        for diagnosis in {row["icd9_code"]: row for row in [*lasting, new]}.values():
            self.add_diagnosis((subject, stay), diagnosis, start, end)
            shown |= dict(limits.split(":") for limits in (diagnosis["labs"] or "").split())
        for lab in self.random.sample(self.labs, 2):
            for when in sorted(self.between(start, end) for _ in range(self.random.randint(2, 3))):
                found = self.value(subject, lab, shown.get(lab["itemid"]))
                item = int(lab["itemid"])
                self.add("labevents", subject, stay, item, when, found, lab["unit"])
        if self.random.random() < 0.4:
            self.add_unit_stay((subject, stay), start, end)
        return end

    def add_diagnosis(
        self, stay: tuple[int, int], diagnosis: dict[str, str], start: datetime, end: datetime
    ) -> None:
        """Add a diagnosis of a stay, with drugs against it and perhaps a procedure."""
        self.add("diagnoses_icd", *stay, diagnosis["icd9_code"], start)
        against = diagnosis["drugs"].split(",")
        count = min(len(against), self.random.choice((1, 1, 2)))
        for named in sorted(self.random.sample(against, count)):
            drug, _, route = named.partition(":")  # "vancomycin:po": by mouth, against this one
            first = self.between(start, end).replace(hour=0, minute=0)
            form = self.random.choice([f for f in self.forms[drug] if route in ("", f["route"])])
            dose = [self.random.choice(form["doses"].split(",")), form["unit"], form["route"]]
            days = min(self.random.randint(1, 9), int(form["days"] or 9))
            last = min(first + timedelta(days=days), end.replace(hour=0, minute=0))
            self.add("prescriptions", *stay, first, last, drug, *dose)
        if diagnosis["procedures"] and self.random.random() < 0.4:
            code = self.random.choice(diagnosis["procedures"].split(","))
            self.add("procedures_icd", *stay, code, self.between(start, end))

    def add_unit_stay(self, stay: tuple[int, int], start: datetime, end: datetime) -> None:
        """Add hours in intensive care within a stay: what was charted, went in and came out."""
        number = next(self.numbers)
        into, out = sorted(self.between(start, end) for _ in range(2))
        unit = self.random.choice(UNITS)
        self.add(
            "icustays", *stay, number, unit, self.random.choice((unit, unit, *UNITS)), into, out
        )
        for item in sorted(self.random.sample(self.items, 5), key=lambda row: row["itemid"]):
            table = item["linksto"]
            code = int(item["itemid"])
            for when in sorted(self.between(into, out) for _ in range(self.random.randint(1, 2))):
                charted = (code, when, self.value(stay[0], item), item["unit"])
                self.add(
                    table,
                    *stay,
                    number,
                    *(charted if table == "chartevents" else (when, code, charted[2])),
                )

    def value(self, subject: int, measured: dict[str, str], shown: str | None = None) -> float:
        """Return a measured value as usually rounded: near the patient's usual one, within limits.

        shown: the limits that a diagnosis shows. The usual value moves to its place between them.
        """
        spread = float(measured["spread"])
        key = (subject, measured["itemid"])
        if key not in self.usual:
            self.usual[key] = self.within(float(measured["mean"]), spread, measured)
        usual = self.usual[key]
        decimals = int(measured["decimals"])
        value = round(self.within(usual, spread * float(measured["swing"]), measured), decimals)
        if shown:
            least, most = map(float, shown.split("-"))
            lowest, highest = float(measured["lowest"]), float(measured["highest"])
            value += least + (usual - lowest) / (highest - lowest) * (most - least) - usual
        return round(value, decimals)

    def within(self, mean: float, spread: float, measured: dict[str, str]) -> float:
        while True:
            value = self.random.gauss(mean, spread)
            if float(measured["lowest"]) <= value <= float(measured["highest"]):
                return value


def age(birth: datetime, when: datetime) -> int:
    return when.year - birth.year - ((when.month, when.day) < (birth.month, birth.day))
