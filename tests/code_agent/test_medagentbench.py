"""Tasks of MedAgentBench on a FHIR server: values and payloads are paid, words are not."""

import json
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
from tests.corpora import cases_of
from tests.serving import serving


@pytest.fixture
def server(monkeypatch):
    made = FHIRServer()
    monkeypatch.setattr(medagentbench, "base_url", lambda: made.url)
    with serving(made):
        yield made


def row(kind: int, instruction: str, patient: str) -> dict[str, Any]:
    return {"id": f"task{kind}_1", "instruction": instruction, "eval_MRN": patient}


def opened(folder: Path, given: dict[str, Any]) -> MedAgentBench:
    (folder / "test_tasks.jsonl").write_text(json.dumps(given) + "\n", encoding="utf-8")
    return MedAgentBench(folder, "test")


def handed(folder: Path, given: dict[str, Any], answer: Any) -> float | None:
    return played(opened(folder, given), Action("submit", {"answer": answer}))[1].score


def test_a_row_of_the_published_file_has_only_what_its_answer_needs(tmp_path):
    """The second version leaves out keys that are null."""
    name = {"id": "task1_1", "instruction": "MRN of Jane Roe?", "sol": ["Patient not found"]}
    age = {"id": "task2_1", "instruction": "What is the age of S1?", "eval_MRN": "S1"}
    for given in (name, age):
        assert opened(tmp_path, given).task(0).question == given["instruction"]
    for given, key in ((name, "sol"), (age, "eval_MRN")):
        with pytest.raises(AgentError, match=key):
            opened(tmp_path, {**given, key: None}).task(0)


@pytest.mark.usefixtures("bubblewrap")
def test_what_the_server_says_is_in_a_variable_of_the_programs(tmp_path, server):
    patient = next(iter(server.patients))
    born = int(server.patients[patient]["dob"][:4])
    tasks = opened(tmp_path, row(2, f"What's the age of {patient}?", patient))
    asked = {"data_path": f"GET Patient?identifier={patient}", "info_type": "fhir"}
    age = "2023 - int(bundle['entry'][0]['resource']['birthDate'][:4])"
    run = Action("validate_code", {"code": f"print({{'GET': [{age}]}})"})
    episode, reward = played(tasks, Action("request_info", asked), run, Action("submit"))
    assert server.asked[0].startswith("/fhir/Patient?identifier=")
    month = server.patients[patient]["dob"][5:10]
    assert episode.answer == str({"GET": [2023 - born]})
    assert reward.score == float(month <= "11-13")


@pytest.mark.parametrize(
    "case", cases_of(__file__, "corpus/medagentbench"), ids=lambda case: case["why"]
)
def test_values_and_payloads_are_compared_and_words_earn_nothing(tmp_path, server, case):
    server.observations = [tuple(one) for one in case["observations"]]
    for worth, answers in ((1, case["right"]), (0, case["wrong"])):
        for answer in answers:
            assert handed(tmp_path, case["row"], answer) == worth, answer


def test_values_beyond_the_servers_first_page_count(tmp_path, server):
    """Patients of an intensive care unit have hundreds of values."""
    times = [f"2023-11-13T0{minute // 60}:{minute % 60:02}:00+00:00" for minute in range(200)]
    for number, time in enumerate(times, 1):
        server.observations += [("S1", code, time, float(number)) for code in ("MG", "GLU")]
    assert handed(tmp_path, row(4, "Magnesium?", "S1"), {"GET": [200]}) == 1
    assert handed(tmp_path, row(6, "Average CBG?", "S1"), {"GET": [100.5]}) == 1
    server.most = 200
    assert handed(tmp_path, row(6, "Average CBG?", "S1"), {"GET": [100.5]}) == 1
    server.most = 199
    with pytest.raises(EpisodeError, match="S1's values of GLU"):
        handed(tmp_path, row(6, "Average CBG?", "S1"), {"GET": [100.0]})


def test_a_dead_server_leaves_the_episode_unscored(tmp_path, server):
    server.shutdown()
    server.server_close()
    with pytest.raises(EpisodeError, match="does not answer"):
        handed(tmp_path, row(4, "Magnesium?", "S1"), {"GET": [1]})
