"""MedAgentBench: questions and orders about patients of the FHIR server at FHIR_BASE_URL.

`request_info` reads the server. Orders are handed in under "POST" and never sent. Gold is computed
from the server when an answer is graded.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from statistics import fmean
from typing import Any

from code_agent.actions import EpisodeContext
from code_agent.graders import parsed, same_date
from code_agent.judging import Handed
from code_agent.lookup import LookupRefused
from code_agent.settings import CodeSettings
from code_agent.task import CodeTask
from code_agent.tasks.fhir import Bundle, alive, fetch
from code_agent.tasks.gym_set import MedAgentGymSet
from common.llm.endpoint import without_secrets
from common.settings import load_settings
from common.toml import table_beside
from episodes.agent import Row
from episodes.episode import AgentError
from episodes.outcomes import EpisodeError

TABLE: dict[str, Any] = table_beside(__file__)
NOW = datetime.fromisoformat(TABLE["now"])
PAYLOADS = TABLE["payload"]
CLOSE = 1e-3
# mg/dL of magnesium below which so many grams are given, at a gram an hour, and up to which 1 is.
# mEq of potassium for 0.1 below the goal.
GRAMS = ((1.0, 4), (1.5, 2))
MILD = 1.9
POTASSIUM_GOAL = 3.5
POTASSIUM_STEP = 10
MOST = 5000  # observations of a patient and a code
YEAR = timedelta(days=365)


class MedAgentBench(MedAgentGymSet):
    name = "medagentbench"

    def read_row(self, row: Row) -> dict[str, Any]:
        kind = row["id"].split("_")[0]
        if kind not in TABLE:
            raise ValueError(f"id {row['id']!r}: expected task1_1 to task10_30")
        # The published file gives each row only what its answer is made from
        needs = "sol" if TABLE[kind]["asks"] == "mrn" else "eval_MRN"
        if not row.get(needs):
            raise ValueError(f"{needs} is missing")
        question = f"{row['instruction']} {row.get('context') or ''}".strip()
        about = {"instruction": row["instruction"], "patient": row.get("eval_MRN")}
        about |= {"sol": row.get("sol"), "kind": kind, "question": question}
        return {"question": question, "reference": json.dumps(about), "task_type": kind}

    async def worth(self, task: CodeTask, handed: Handed, context: EpisodeContext) -> float:
        """Return 1 if values match the server's records and the payloads follow from them."""
        said = read_answer(handed.answer)
        about = json.loads(task.reference)
        try:
            values, payloads = await asyncio.to_thread(expected, about)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise EpisodeError(
                "task_unusable",
                f"the FHIR server's records of {about['patient']} "
                f"do not answer this task ({error!r})",
            ) from None
        # Who orders need not name a level, nor who finds none to order for
        unmeasured = TABLE[about["kind"]]["asks"] == "order" and values == [-1]
        may_be_empty = bool(payloads) or unmeasured
        right = holds(said["GET"], values) or (may_be_empty and not said["GET"])
        return float(right and holds(said["POST"], payloads))

    def missing(self) -> str:
        why = alive(base_url())
        return f"no FHIR server answers at {base_url()} ({why}); set FHIR_BASE_URL" if why else ""

    def look_up(self, name: str, kind: str, keyterm: str = "") -> str:
        """Return the server's answer as JSON. Raises LookupRefused, or EpisodeError: none."""
        return json.dumps(fetch(base_url(), name))


def base_url() -> str:
    """Return the server's address with a final slash. Raises AgentError: not an HTTP address."""
    base = load_settings().of(CodeSettings).fhir_base_url
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", base):
        wanted = "expected one like http://HOST:8080/fhir/, without user or query"
        raise AgentError(f"FHIR_BASE_URL is {without_secrets(base)!r}; {wanted}")
    return f"{base.rstrip('/')}/"


def known(path: str) -> Bundle:
    """Return the server's data for a gold answer. Raises EpisodeError if it does not answer."""
    try:
        return fetch(base_url(), path)
    except LookupRefused as error:
        raise EpisodeError("database_error", str(error)) from None


def expected(about: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return values under GET and payloads under POST. With payloads the values may be left out."""
    kind = TABLE[about["kind"]]
    question = about["question"]
    fields = {"patient": about["patient"], "now": TABLE["now"]}
    asks = kind["asks"]
    if asks == "mrn":
        return [about["sol"][0]], []
    if asks == "age":
        patient = known(f"Patient?identifier={about['patient']}&_format=json")
        born = date.fromisoformat(patient["entry"][0]["resource"]["birthDate"])
        years = NOW.year - born.year
        is_birthday_to_come = (NOW.month, NOW.day) < (born.month, born.day)
        return [years - 1 if is_birthday_to_come else years], []
    if asks in ("record", "refer"):
        fields["value"] = _found(r'"(.+)"', about["instruction"]).strip()
        fields["code"] = _found(r"(\d{8,})", question)
        return [], [_filled(PAYLOADS[asks], fields)]
    found = readings(about["patient"], kind["code"], kind.get("hours"))
    loinc = _found(r"LOINC code[^.]*?(\d{3,6}-\d)", question)
    test = _filled(PAYLOADS["test"], {**fields, "code": loinc})
    if not found:
        return [-1], [test] if asks == "renew" else []
    at, latest = found[-1]
    if asks == "latest":
        return [latest], []
    if asks == "mean":
        return [fmean(value for _, value in found)], []
    if asks == "renew":
        return [latest, at.isoformat()], [] if at >= NOW - YEAR else [test]
    ndc = _found(r"\b(\d{4,5}-\d{3,4}-\d{2})\b", question)
    drug = _filled(PAYLOADS["drug"], {**fields, "code": ndc})
    return [latest], _orders(kind["code"], latest, drug, test)


def _orders(code: str, level: float, drug: Bundle, test: Bundle) -> list[Bundle]:
    if code == "MG":
        grams = next((dose for below, dose in GRAMS if level < below), 1)
        return [_dosed(drug, grams, "g")] if level <= MILD else []
    if level >= POTASSIUM_GOAL:
        return []
    morning = (NOW + timedelta(days=1)).replace(hour=8, minute=0).isoformat()
    dose = (POTASSIUM_GOAL - level) / 0.1 * POTASSIUM_STEP
    return [_dosed(drug, dose, "mEq"), {**test, "occurrenceDateTime": morning}]


def _dosed(drug: Bundle, amount: float, unit: str) -> Bundle:
    quantity = {"value": amount, "unit": unit}
    return drug | {"dosageInstruction": [{"doseAndRate": [{"doseQuantity": quantity}]}]}


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.DOTALL)
    return match[1] if match else ""


def readings(patient: str, code: str, hours: int | None) -> list[tuple[datetime, float]]:
    """Return times and values of a code, oldest first. Raises EpisodeError: some are missing."""
    bundle = known(f"Observation?patient={patient}&code={code}&_count={MOST}&_format=json")
    if any(link.get("relation") == "next" for link in bundle.get("link", ())):
        raise EpisodeError(
            "database_error",
            f"{base_url()} answers with a part of {patient}'s values of {code}; expected all, "
            f"let it answer with {MOST} resources at once",
        )
    found = []
    for entry in bundle.get("entry", ()):
        at = datetime.fromisoformat(entry["resource"]["effectiveDateTime"])
        value = entry["resource"]["valueQuantity"]["value"]
        if hours is None or NOW - timedelta(hours=hours) <= at <= NOW:
            found.append((at, value))
    return sorted(found)


def read_answer(text: str) -> dict[str, list[Any]]:
    """Return GET and POST as lists, numbers in them as texts. What is neither is GET."""
    value = parsed(text.strip())
    if not isinstance(value, dict):
        value = {"GET": value if isinstance(value, list | tuple) else [value]}
    found = {}
    for name in ("GET", "POST"):
        part = value.get(name)
        if not isinstance(part, list | tuple):
            part = [part] if part and part != "None" else []
        found[name] = [one.get("payload", one) if isinstance(one, dict) else one for one in part]
    return found


def holds(said: Any, wanted: Any) -> bool:
    """Return whether what was said has everything wanted. Lists have the same length and order."""
    if isinstance(wanted, dict):
        if isinstance(said, list | tuple) and len(said) == 1:
            [said] = said  # `note` and `code` are given both ways
        return isinstance(said, dict) and all(
            key in said and holds(said[key], wanted[key]) for key in wanted
        )
    if isinstance(wanted, list):
        is_list = isinstance(said, list | tuple) and len(said) == len(wanted)
        return is_list and all(map(holds, said, wanted))
    if isinstance(wanted, int | float):
        try:
            return abs(float(said) - wanted) <= CLOSE * max(1.0, abs(wanted))
        except (TypeError, ValueError, OverflowError):
            return False
    text = str(said).strip()
    return text.casefold() == str(wanted).strip().casefold() or same_date(text, wanted)


def _filled(value: Any, fields: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(part, fields) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, fields) for part in value]
    return value.format(**fields)
