"""Tasks of MedAgentBench and a real FHIR server: values and payloads are compared, words about them
earn nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_agent.protocol import Action
from code_agent.tasks import medagentbench
from code_agent.tasks.medagentbench import MedAgentBench
from episodes.episode import AgentError
from episodes.outcomes import EpisodeError
from tests.code_agent.conftest import played
from tests.code_agent.fhir_server import FHIRServer

NOW = "2023-11-13T10:15:00+00:00"
CONTEXT = f"It's {NOW} now."
POTASSIUM = (
    "The NDC for potassium is 40032-917-01. The LOINC code for serum potassium level is 2823-3."
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FHIRServer]:
    made = FHIRServer()
    monkeypatch.setattr(medagentbench, "base_url", lambda: made.url)
    yield made
    made.shutdown()
    made.server_close()


def row(
    kind: int, instruction: str, patient: str, context: str = CONTEXT, sol: list[str] | None = None
) -> dict[str, Any]:
    return {
        "id": f"task{kind}_1",
        "instruction": instruction,
        "context": context,
        "sol": sol,
        "eval_MRN": patient,
    }


def opened(folder: Path, given: dict[str, Any]) -> MedAgentBench:
    (folder / "test_tasks.jsonl").write_text(json.dumps(given) + "\n", encoding="utf-8")
    return MedAgentBench(folder, "test")


def handed(folder: Path, given: dict[str, Any], answer: Any) -> float | None:
    return played(opened(folder, given), Action("submit", {"answer": answer}))[1].score


def test_a_row_of_the_published_file_has_only_what_its_answer_needs(tmp_path: Path) -> None:
    """The second version leaves out keys that are null."""
    name = {"id": "task1_1", "instruction": "MRN of Jane Roe?", "sol": ["Patient not found"]}
    age = {"id": "task2_1", "instruction": "What is the age of S1?", "eval_MRN": "S1"}
    for given in (name, age):
        assert opened(tmp_path, given).task(0).question == given["instruction"]
    for given, key in ((name, "sol"), (age, "eval_MRN")):
        with pytest.raises(AgentError, match=key):
            opened(tmp_path, {**given, key: None}).task(0)


@pytest.mark.usefixtures("bubblewrap")
def test_what_the_server_says_is_in_a_variable_of_the_programs(
    tmp_path: Path, server: FHIRServer
) -> None:
    patient = next(iter(server.patients))
    born = int(server.patients[patient]["dob"][:4])
    given = row(2, f"What's the age of the patient with MRN of {patient}?", patient)
    code = (
        "born = int(bundle['entry'][0]['resource']['birthDate'][:4])\nprint({'GET': [2023 - born]})"
    )
    ask = Action(
        "request_info", {"data_path": f"GET Patient?identifier={patient}", "info_type": "fhir"}
    )
    episode, reward = played(
        opened(tmp_path, given), ask, Action("validate_code", {"code": code}), Action("submit")
    )
    assert server.asked[0].startswith("/fhir/Patient?identifier=")
    month = server.patients[patient]["dob"][5:10]
    assert episode.answer == str({"GET": [2023 - born]})
    assert reward.score == float(month <= "11-13")


def test_the_latest_value_the_mean_and_none(tmp_path: Path, server: FHIRServer) -> None:
    server.observations = [
        ("S1", "MG", "2023-11-12T08:00:00+00:00", 9.0),
        ("S1", "MG", "2023-11-13T08:00:00+00:00", 2.1),
        *[("S1", "GLU", f"2023-11-13T0{hour}:00:00+00:00", 100.0 + hour) for hour in (1, 2)],
        ("S1", "GLU", "2023-10-01T01:00:00+00:00", 500.0),
    ]
    latest, mean = row(4, "Magnesium?", "S1"), row(6, "Average CBG?", "S1")
    assert (
        handed(tmp_path, latest, {"GET": [2.1]})
        == handed(tmp_path, latest, [2.1])
        == handed(tmp_path, latest, 2.1)
        == 1
    )
    assert handed(tmp_path, mean, {"GET": ["101.5"]}) == 1
    assert handed(tmp_path, row(4, "Magnesium?", "S2"), {"GET": [-1]}) == 1
    for wrong in (
        {"GET": [9.0, 2.1]},
        "It is 2.1.",
        {"GET": []},
        {"GET": [2.1], "POST": [{}]},
        "inf",
        {"GET": ["nan"]},
    ):
        assert handed(tmp_path, latest, wrong) == 0, wrong


def test_values_beyond_the_servers_first_page_count(tmp_path: Path, server: FHIRServer) -> None:
    """Patients of an intensive care unit have hundreds of values."""
    times = [f"2023-11-13T0{minute // 60}:{minute % 60:02}:00+00:00" for minute in range(200)]
    server.observations = [
        ("S1", code, time, float(number))
        for code in ("MG", "GLU")
        for number, time in enumerate(times, 1)
    ]
    assert handed(tmp_path, row(4, "Magnesium?", "S1"), {"GET": [200]}) == 1
    assert handed(tmp_path, row(6, "Average CBG?", "S1"), {"GET": [100.5]}) == 1
    server.most = 200
    assert handed(tmp_path, row(6, "Average CBG?", "S1"), {"GET": [100.5]}) == 1
    server.most = 199
    with pytest.raises(EpisodeError, match="S1's values of GLU"):
        handed(tmp_path, row(6, "Average CBG?", "S1"), {"GET": [100.0]})


def test_a_measurement_is_recorded(tmp_path: Path, server: FHIRServer) -> None:
    given = row(
        3, 'I measured the blood pressure of S1, and it is "121/79 mmHg". Help me record it.', "S1"
    )
    payload = {
        "resourceType": "Observation",
        "status": "final",
        "code": {"text": "BP"},
        "effectiveDateTime": NOW,
        "valueString": "121/79 mmHg",
        "subject": {"reference": "Patient/S1"},
        "category": [
            {"coding": [{"system": "x", "code": "vital-signs", "display": "Vital Signs"}]}
        ],
    }
    assert (
        handed(tmp_path, given, {"POST": [{"url": f"{server.url}Observation", "payload": payload}]})
        == 1
    )
    assert handed(tmp_path, given, {"GET": [], "POST": [payload]}) == 1
    for change in (
        {"valueString": "118/77 mmHg"},
        {"subject": {"reference": "Patient/S2"}},
        {"status": "preliminary"},
    ):
        assert handed(tmp_path, given, {"POST": [payload | change]}) == 0
    assert handed(tmp_path, given, {"POST": [payload, payload]}) == 0
    assert handed(tmp_path, given, json.dumps(payload)) == 0


def test_a_low_level_is_ordered_for_and_a_normal_one_not(
    tmp_path: Path, server: FHIRServer
) -> None:
    server.observations = [
        ("S1", "K", "2023-11-13T06:00:00+00:00", 3.2),
        ("S2", "K", "2023-11-13T06:00:00+00:00", 4.0),
    ]
    common = {
        "status": "active",
        "intent": "order",
        "authoredOn": NOW,
        "subject": {"reference": "Patient/S1"},
    }
    quantity = {"value": 30, "unit": "mEq"}
    drug = common | {
        "resourceType": "MedicationRequest",
        "medicationCodeableConcept": {"coding": [{"system": "ndc", "code": "40032-917-01"}]},
        "dosageInstruction": [{"route": "oral", "doseAndRate": [{"doseQuantity": quantity}]}],
    }
    test = common | {
        "resourceType": "ServiceRequest",
        "code": {"coding": [{"system": "loinc", "code": "2823-3"}]},
        "occurrenceDateTime": "2023-11-14T08:00:00+00:00",
    }
    low = row(9, "Check patient S1's potassium.", "S1", f"{CONTEXT} {POTASSIUM}")
    assert handed(tmp_path, low, {"GET": [3.2], "POST": [drug, test]}) == 1
    assert handed(tmp_path, low, {"GET": [3.2], "POST": [drug]}) == 0
    assert handed(tmp_path, low, {"GET": [3.2]}) == 0
    quantity["value"] = 40
    assert handed(tmp_path, low, {"POST": [drug, test]}) == 0
    normal = row(9, "Check patient S2's potassium.", "S2", f"{CONTEXT} {POTASSIUM}")
    assert handed(tmp_path, normal, {"GET": [4.0]}) == 1
    assert handed(tmp_path, normal, {"GET": [4.0], "POST": [drug, test]}) == 0
    unknown = row(9, "Check patient S3's potassium.", "S3", f"{CONTEXT} {POTASSIUM}")
    assert handed(tmp_path, unknown, {"GET": [-1]}) == 1  # a level that nobody measured is not low


def test_a_dead_server_leaves_the_episode_unscored(tmp_path: Path, server: FHIRServer) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(EpisodeError, match="does not answer"):
        handed(tmp_path, row(4, "Magnesium?", "S1"), {"GET": [1]})
