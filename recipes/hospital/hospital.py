"""An invented hospital: 2,000 patients and what was done with them, drawn by rule from one seed.

Tables and columns are named as those of MIMIC-III in lower case, so that questions about one carry
over to the other. Codes are ICD-9-CM's. Dependencies are kept simple: a patient has lasting
diagnoses and a new one at each stay, a diagnosis brings drugs and procedures, and two laboratory
values are watched through each stay. A few diagnoses show in them. What does not suit a patient is
replaced or left out after it was drawn, so that such a rule shifts no other row.
"""

import csv
import tomllib
from datetime import datetime, timedelta
from itertools import product
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
ONCE = set(_TABLE["once"])
OLD = 65  # years, from which Medicare insures
YOUNG = 25  # years, until which nobody is widowed or divorced
FRAIL = 60  # years, from which some drugs have a lower largest dose
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
        self.instead = Random(f"{seed}/instead")  # of what replaces something drawn
        self.forms: dict[str, list[dict[str, str]]] = {}  # how a drug is given
        for form in words("drugs"):
            self.forms.setdefault(form["drug"], []).append(form)
        self.never: dict[str, set[str]] = {}  # what bars what
        for drugs, others in _TABLE["never_with"].items():
            for pair in product(drugs.split(","), others.split(",")):
                for one, other in (pair, pair[::-1]):
                    self.never.setdefault(one, set()).add(other)
        self.procedures = {row["icd9_code"]: row for row in words("procedures")}
        self.ended: set[str] = set()  # of the patient: what does not come again
        self.had: set[str] = set()  # of the stay: its diagnoses
        self.orders: list[tuple[str, datetime, datetime]] = []  # of the stay: drugs and their days
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

    def add(self, table: str, *cells: Any, kept: bool = True) -> None:
        """Append a row. What costs money is charged. Without `kept` only the charge is drawn."""
        rows = self.tables[table]
        cost = round(self.random.uniform(*CHARGES[table]), 2) if table in CHARGES else None
        if not kept:
            return
        rows.append([len(rows) + 1, *cells])
        if cost is not None:
            when = next(cell for cell in cells if isinstance(cell, datetime))
            self.add("cost", *cells[:2], table, len(rows), when, cost)

    def amend(self, column: str, value: str) -> None:
        """Change a cell of the latest admission."""
        self.tables["admissions"][-1][column_names("admissions").index(column)] = value

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
        self.ended = set()
        status = "marital_status" if age(birth, starts[0]) > YOUNG else "young_status"
        about = [self.drawn(SAID[name]) for name in ("language", status, "ethnicity")]
        for start in starts:
            if start > end:
                end = self.add_stay(subject, (sex, birth), start, lasting, about)
        died = end if self.random.random() < 0.08 else None
        if died:
            self.amend("discharge_location", DIED)
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
        diagnoses = {row["short_title"]: row for row in [*lasting, new]}
        self.orders = []
        self.had = set()
        for name in diagnoses:
            if name not in self.ended and not self.never.get(name, set()) & self.had:
                self.had.add(name)
        self.had = self.had or set(diagnoses)  # no stay is for nothing
        self.ended |= self.had & ONCE
        if kind == "elective" and self.had & ONCE:
            self.amend("admission_type", "urgent")
        for name, diagnosis in diagnoses.items():
            self.add_diagnosis((subject, stay), diagnosis, start, end, years)
            if name in self.had:
                shown |= dict(limits.split(":") for limits in (diagnosis["labs"] or "").split())
        for lab in self.random.sample(self.labs, 2):
            for when in sorted(self.between(start, end) for _ in range(self.random.randint(2, 3))):
                found = self.value(subject, lab, shown.get(lab["itemid"], lab["else"]))
                item = int(lab["itemid"])
                self.add("labevents", subject, stay, item, when, found, lab["unit"])
        if self.random.random() < 0.4:
            self.add_unit_stay((subject, stay), start, end)
        return end

    def add_diagnosis(
        self,
        stay: tuple[int, int],
        diagnosis: dict[str, str],
        start: datetime,
        end: datetime,
        years: int,
    ) -> None:
        """Add a diagnosis of a stay, with drugs against it and perhaps a procedure."""
        kept = diagnosis["short_title"] in self.had
        self.add("diagnoses_icd", *stay, diagnosis["icd9_code"], start, kept=kept)
        against = diagnosis["drugs"].split(",")
        count = min(len(against), self.random.choice((1, 1, 2)))
        for named in sorted(self.random.sample(against, count)):
            first = self.between(start, end).replace(hour=0, minute=0)
            drawn = self.ordered(named, self.random, years)
            days = self.random.randint(1, 9)
            others = [self.ordered(other, self.instead, years) for other in against]
            for order, most in (drawn, *others):
                last = min(first + timedelta(min(days, most)), end.replace(hour=0, minute=0))
                suits = kept and self.suits(order[0], first, last)
                if suits:
                    self.orders.append((order[0], first, last))
                    break
            self.add("prescriptions", *stay, first, last, *order, kept=suits)
        if diagnosis["procedures"] and self.random.random() < 0.4:
            done = self.procedures[self.random.choice(diagnosis["procedures"].split(","))]
            when = self.between(start, end)
            name = done["short_title"]
            kept = kept and name not in self.ended and self.suits(name, when, when)
            self.add("procedures_icd", *stay, done["icd9_code"], when, kept=kept)
            if kept:
                self.ended |= set((done["ends"] or "").split(","))

    def ordered(self, named: str, random: Random, years: int) -> tuple[list[str], int]:
        """Draw a form and a dose. Return the cells of an order, and the most days it may last."""
        drug, _, route = named.partition(":")  # "vancomycin:po": by mouth, against this one
        form = random.choice([f for f in self.forms[drug] if route in ("", f["route"])])
        dose, _, most = random.choice(form["doses"].split(",")).partition("/")
        if years >= FRAIL and form["most_when_old"]:
            dose = min(dose, form["most_when_old"], key=float)
        return [drug, dose, form["unit"], form["route"]], int(most or 9)

    def suits(self, what: str, first: datetime, last: datetime) -> bool:
        """Return whether neither a diagnosis nor an order of the stay bars a drug or procedure."""
        at_once = {other for other, begin, end in self.orders if begin <= last and first <= end}
        return not (self.never.get(what, set()) | {what}) & (self.had | at_once)

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

        shown: the limits that a diagnosis shows, or that hold without one. The value moves to its
        place between them.
        """
        spread = float(measured["spread"])
        key = (subject, measured["itemid"])
        if key not in self.usual:
            self.usual[key] = self.within(float(measured["mean"]), spread, measured)
        usual = self.usual[key]
        swung = self.within(usual, spread * float(measured["swing"]), measured) - usual
        value = usual + swung * float(measured.get("slow") or 1)
        if shown:
            least, most = map(float, shown.split("-"))
            lowest, highest = float(measured["lowest"]), float(measured["highest"])
            value = least + (value - lowest) / (highest - lowest) * (most - least)
        return round(value, int(measured["decimals"]))

    def within(self, mean: float, spread: float, measured: dict[str, str]) -> float:
        while True:
            value = self.random.gauss(mean, spread)
            if float(measured["lowest"]) <= value <= float(measured["highest"]):
                return value


def age(birth: datetime, when: datetime) -> int:
    return when.year - birth.year - ((when.month, when.day) < (birth.month, birth.day))
