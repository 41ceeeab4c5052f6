"""Public test sets are known by their content; what cannot be played is counted, with why."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from common.command import UsageError
from common.settings import load_settings
from consultation_agent.llm_patient import record_lines
from consultation_agent.record_patient import RecordPatient
from episodes import registry
from episodes.script import Script
from tests.corpora import cases_of, write_lines
from tests.messages import missing

SETS = json.loads(Path(__file__).with_name("outside.json").read_text(encoding="utf-8"))
OSCE = SETS["osce"]
IMAGE = SETS["image"]
VIGNETTE = SETS["vignette"]
MEDIQ = SETS["mediq"]


def written(folder: Path, *rows: Any) -> Path:
    numbered = [row | {"id": row["id"] + at} if "id" in row else row for at, row in enumerate(rows)]
    return write_lines(folder / "set.jsonl", numbered)


def tasks_of(name: str, path: Path) -> list[Any]:
    """The tasks that an agent makes of a file."""
    agent = registry.get(name)
    return [agent.task(row, load_settings()) for row in agent.rows(path)]


def test_an_osce_case_for_the_diagnosis_agent(tmp_path, capsys):
    [task] = tasks_of("diagnosis", written(tmp_path, OSCE))
    assert not missing(capsys.readouterr().err, "AgentClinic (OSCE)", "1 rows")
    assert (task.reference, task.age, task.sex) == ("Pulmonary tuberculosis", 52, "female")
    assert "sweats at night" in task.question
    assert "Work: nurse" in task.question
    assert "cavity" not in task.question
    assert task.results["Chest X-ray"] == "Findings: A cavity in the upper lobe."
    assert task.results["Complete Blood Count"] == "WBC: 11 x 10^9/L\nHemoglobin: 12 g/dL"
    assert task.results["WBC"] == "11 x 10^9/L"
    assert (task.results["ESR"], task.results["MRI Brain"][-12:]) == ("60 mm/h", "tuberculoma.")
    assert not {"Findings", "Imaging"} & set(task.results)


def test_the_rows_of_a_table_are_results_by_their_names(tmp_path):
    rows = [{"test": "Ferritin", "value": 4.3, "unit": "ng/mL"}, {"test": "Iron", "value": 5}]
    tables = {"Serum": rows, "Dates": [{"Na": 138}], "Signs": [{"name": "gait"}]}
    case = OSCE["OSCE_Examination"] | {"Test_Results": tables}
    case["Physical_Examination_Findings"] = "Pale."
    [task] = tasks_of("diagnosis", written(tmp_path, {"OSCE_Examination": case}))
    assert task.results["Ferritin"] == "value: 4.3; unit: ng/mL"
    assert task.results["Serum"] == "Ferritin: value: 4.3; unit: ng/mL\nIron: value: 5"
    assert (task.results["Dates"], task.results["Signs"]) == ("Na: 138", "name: gait")
    assert task.results["Physical Examination Findings"] == "Pale."


def test_an_image_challenge_is_marked_and_other_questions_are_counted(tmp_path, capsys):
    other = IMAGE | {"question": "A boy was bitten. Which animal is shown?"}
    known = IMAGE | {"question": "The diagnosis was scabies. Which treatment is best?"}
    both = IMAGE | {"answers": [{"text": name, "correct": True} for name in ("Scabies", "Eczema")]}
    [task] = tasks_of("diagnosis", written(tmp_path, IMAGE, other, known, both))
    said = capsys.readouterr().err
    assert not missing(said, "3 are not", "2 ask for something", "1 have no single")
    assert (task.reference, task.task_type, task.age) == ("Scabies", "without the image", 1)
    assert task.results == {"Skin scraping": "Mites seen", "Blood culture": "Negative"}
    assert "likely" not in task.question


def test_a_list_that_is_one_text_is_read_by_its_lines(tmp_path, capsys):
    row = MEDIQ | {"context": "A man coughs.", "facts": "1. He coughs.\n2. He smokes."}
    [task] = tasks_of("consultation", written(tmp_path, row, row | {"context": {"a": 1}}))
    assert task.question.startswith("A man coughs.")
    assert "He coughs.\nHe smokes." in task.description
    assert "1 have no facts" in capsys.readouterr().err


@pytest.mark.parametrize("row", [OSCE, VIGNETTE], ids=["osce", "vignette"])
def test_a_patient_of_the_consultation_agent(row, tmp_path):
    [task] = tasks_of("consultation", written(tmp_path, row))
    assert task.question in ("A cough", "Toe pain")
    assert task.reference in ("Pulmonary tuberculosis", "Gout")
    assert task.reference not in task.description
    assert "cavity" not in task.description


NAMELESS = {"OSCE_Examination": OSCE["OSCE_Examination"] | {"Correct_Diagnosis": ""}}
LISTED = {"OSCE_Examination": OSCE["OSCE_Examination"] | {"Test_Results": ["clear"]}}


@pytest.mark.parametrize(
    ("rows", "seen"),
    [
        ([OSCE, VIGNETTE], "row 2 lacks OSCE_Examination"),
        ([NAMELESS], "no usable row; .*1 have"),
        ([VIGNETTE | {"correct_diagnosis": None}] * 2, "no usable row; .*2 have"),
        ([LISTED], "no usable row; .*1 have Test Results without names"),
        ([IMAGE | {"answers": ["Scabies"]}], "no usable row; .*1 have no single right"),
    ],
)
def test_bad_files_are_one_line(rows, seen, tmp_path):
    with pytest.raises(UsageError, match=seen):
        registry.get("diagnosis").rows(written(tmp_path, *rows))


@pytest.fixture
def environment() -> Any:
    return registry.get("consultation").open(load_settings(), {})


def test_a_case_with_options_shows_them_and_hides_its_facts(tmp_path, capsys):
    wrong = [MEDIQ | {"answer_idx": "E"}, MEDIQ | {"answer_idx": "C"}]
    several = MEDIQ | {"answer_idx": ["A", "B"]}
    none = [MEDIQ | {"facts": []}, MEDIQ | {"facts": [7, None]}]
    [task] = tasks_of("consultation", written(tmp_path, MEDIQ, *wrong, several, *none))
    said = capsys.readouterr().err
    assert not missing(said, "mediQ", "1 rows", "5 are not", "2 have no facts", "2 have an answer")
    assert task.question.splitlines()[0] == MEDIQ["context"][0]  # type: ignore[index]
    assert "Which drug" in task.question
    assert "D: Heparin" in task.question
    known = " ".join(record_lines(task).values())  # what a patient that reads is shown
    assert "beer" in known
    assert "insulin" not in known
    assert RecordPatient().reply_to(task, "Do you take insulin?", []).kind == "unknown"


@pytest.mark.parametrize(("reply", "score"), cases_of(__file__, "choices"))
async def test_a_choice_is_one_letter_in_its_form(reply, score, tmp_path, environment):
    [task] = tasks_of("consultation", written(tmp_path, MEDIQ))
    policy = Script(["<answer>Question: Do you drink alcohol?</answer>", reply], 4)
    episode = await environment.play(task, policy)
    assert (await environment.score(task, episode)).score == score
    assert environment.record(task, episode)["facts"]["questions"] == 1


@pytest.mark.parametrize("right", [["C", "B"], "B,C", "BC"])
async def test_several_right_options_are_right_with_all_of_them(right, tmp_path, environment):
    texts = [MEDIQ["options"][letter] for letter in "BC"]
    row = MEDIQ | {"answer_idx": right, "answer": texts}
    [task] = tasks_of("consultation", written(tmp_path, row))
    assert "Several options are right" in task.question
    for reply, score in (("C, B", 1), ("B and C", 1), ("B", 0), ("B, C, D", 0), ("B or C", 0)):
        episode = await environment.play(task, Script([f"<answer>Choice: {reply}</answer>"], 4))
        assert (await environment.score(task, episode)).score == score


@pytest.mark.parametrize("row", [OSCE, MEDIQ])
async def test_an_english_case_is_played_in_english(row, tmp_path, environment):
    path = written(tmp_path, row)
    [task] = tasks_of("consultation", path)
    asked = ["<answer>Question: Do you own a boat?</answer>", "no form"]
    asked.append("<answer>Question:</answer>")
    episode = await environment.play(task, Script(asked, 4))
    read = "".join(str(message["content"]) for message in episode.messages)
    assert "Question:" in read
    assert not re.search(r"[\u4e00-\u9fff]", read)
    agent = registry.get("consultation")
    [learned] = agent.demonstrations("policy", agent.rows(path), load_settings())
    assert learned.messages[0] == episode.messages[0]


def test_results_of_one_name_keep_their_group(tmp_path):
    tests = {"Serum_Analysis": {"Na": "122 mEq/L"}, "Urinalysis": {"Na": "45 mEq/L"}}
    tests["Joint_Aspiration"] = {"Analysis": {"WBC": "20,000", "Crystals": 0, "Culture": ""}}
    signs = {"Blood_Pressure": {"Sitting": "130/80", "Standing": "110/65"}}
    found = {"Test_Results": tests, "Physical_Examination_Findings": {"Vital_Signs": signs}}
    osce = OSCE["OSCE_Examination"] | found
    [task] = tasks_of("diagnosis", written(tmp_path, {"OSCE_Examination": osce}))
    results = task.results
    assert results["Serum Analysis Na"] == "122 mEq/L"
    assert results["Urinalysis Na"] == "45 mEq/L"
    assert results["Joint Aspiration Analysis"] == "WBC: 20,000\nCrystals: 0"
    assert results["Orthostatic Blood Pressure"] == "Sitting: 130/80\nStanding: 110/65"
