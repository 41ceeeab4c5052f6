"""Consultations of every form become cases and dialogues; what is none is refused with its reason."""

import json
import random

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from conditions.intake import consultations
from conditions.intake.consultation_rows import Refused, read_consultation
from tests.corpora import cases_of, write_lines
from tests.messages import missing

FRAME = "Patient's description: {}\nDecide next action:\nAlways output: <think> [your thinking] </think>\n"
GOLD = {"diagnosis": "knee sprain", "recommendation": "rest, ice"}
PAIRS = [{"doctor_question": ["Did you fall?", "When?"], "patient_response": ["Yes, on stairs."]}]


def asks(question):
    return f"<think> more </think>\n<answer>Question: {question}</answer>"


ENDS = "Diagnosis: Knee sprain\nRecommendation: Rest and ice."
CONCLUDES = f"<think>enough</think><answer>{ENDS}</answer>"


def user(words):
    return {"role": "user", "content": words}


def doctor(words):
    return {"role": "assistant", "content": words}


def case_row(complaint="My knee hurts.", **record):
    known = {"ground_truth": GOLD, "patient_information": PAIRS}
    told = {**known, "enhanced_description": "I fell on Monday.", **record}
    row = {"data_source": "medical_consultation", "prompt": [user(complaint)]}
    return {**row, "reward_model": told, "extra_info": {"index": 7}}


def turn_rows(complaint, questions=2):
    """The rows of one dialogue: as many questions, then the diagnosis."""
    said = [{"role": "system", "content": "You are a doctor."}, user(FRAME.format(complaint))]
    rows = []
    for number in range(questions + 1):
        reply = asks(f"{complaint} {number}?") if number < questions else CONCLUDES
        rows.append(case_row(enhanced_description=None) | {"prompt": list(said), "response": reply})
        said += [doctor(reply), user(f"Answer {number}.\nTurn {number + 1}/{questions + 1}.")]
    return rows


def headache(complaint, advice):
    """The dialogue that the plain rows become."""
    asked = doctor("<answer>问题：一侧痛吗？</answer>")
    ends = doctor(f"<answer>诊断：偏头痛\n建议：{advice}</answer>")
    return [user(complaint), asked, user("左边"), ends]


[PLAIN_ROW] = cases_of(__file__, "plain_dialogue")


def write(path, rows):
    if path.suffix == ".parquet":
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    else:
        write_lines(path, rows)
    return path


def run(path, out, *flags):
    return consultations.main([str(path), "--out", str(out), *flags])


def written(out):
    lines = (out / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()
    cases = parquet.read_table(out / "cases.parquet").to_pylist()
    return cases, [json.loads(line)["messages"] for line in lines]


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_cases_keep_the_columns_of_the_reference(tmp_path, kind):
    source = write(tmp_path / f"a.{kind}", [case_row(), case_row("My elbow hurts.")])
    assert run(source, tmp_path / "out") == 0
    cases, dialogues = written(tmp_path / "out")
    assert cases == [
        case_row() | {"extra_info": {"index": 0}},
        case_row("My elbow hurts.") | {"extra_info": {"index": 1}},
    ]
    assert dialogues == []


def test_turns_in_any_order_become_each_dialogue_once(tmp_path):
    rows = [row for name in ("knee", "elbow") for row in turn_rows(name)] * 2
    random.Random(1).shuffle(rows)
    assert run(write(tmp_path / "a.parquet", rows), tmp_path / "out") == 0
    cases, dialogues = written(tmp_path / "out")
    assert sorted(case["prompt"][0]["content"] for case in cases) == ["elbow", "knee"]
    [knee] = [said for said in dialogues if said[0]["content"] == "knee"]
    first, second = doctor(asks("knee 0?")), doctor(asks("knee 1?"))
    assert knee[:4] == [user("knee"), first, user("Answer 0."), second]
    assert knee[4:] == [user("Answer 1."), doctor(CONCLUDES)]
    assert len(dialogues) == 2


@pytest.mark.parametrize("kind", ["json", "jsonl", "parquet"])
def test_a_plain_dialogue_is_put_into_the_protocol(tmp_path, kind):
    assert run(write(tmp_path / f"a.{kind}", [PLAIN_ROW]), tmp_path / "out") == 0
    cases, dialogues = written(tmp_path / "out")
    assert dialogues == [headache("头痛三天 睡不好", "多休息，避光。")]
    assert cases[0]["prompt"] == [user("头痛三天 睡不好")]
    assert cases[0]["reward_model"] == {
        "ground_truth": {"diagnosis": "偏头痛", "recommendation": "多休息，避光。"},
        "patient_information": [{"doctor_question": ["一侧痛吗？"], "patient_response": ["左边"]}],
        "enhanced_description": None,
    }


@pytest.mark.parametrize("row", cases_of(__file__, "public_dialogues"))
def test_forms_of_public_dialogues_are_one_dialogue(tmp_path, row):
    rows = {"1": row | {"diagnosis": "偏头痛"}, "2": row | {"diagnosis": "偏头痛"}}
    assert run(write(tmp_path / "a.json", rows), tmp_path / "out") == 0
    cases, dialogues = written(tmp_path / "out")
    assert dialogues == [headache("头痛三天", "多休息。")]
    assert len(cases) == 1


def test_a_recommendation_of_the_row_s_own_is_gold_and_not_the_doctor_s_farewell():
    messages = [*PLAIN_ROW["messages"][:-1], {"role": "医生", "content": "再见。"}]
    found = read_consultation(PLAIN_ROW | {"messages": messages, "recommendation": "多休息。"})
    assert found.case["reward_model"]["ground_truth"]["recommendation"] == "多休息。"
    assert found.dialogue[-1] == doctor("<answer>诊断：偏头痛\n建议：多休息。</answer>")


def test_replies_in_the_protocol_stay_and_the_case_asks_in_bare_words():
    messages = [user("My knee hurts."), doctor(asks("Did you fall?")), user("Yes.")]
    messages.append(doctor(CONCLUDES))
    found = read_consultation({"dialogue": messages, **GOLD})
    assert found.dialogue == messages
    told = found.case["reward_model"]
    assert told["ground_truth"] == GOLD
    assert told["patient_information"][0]["doctor_question"] == ["Did you fall?"]


@pytest.mark.parametrize("case", cases_of(__file__, "refused"), ids=lambda case: case["why"])
def test_a_refusal_names_what_was_seen(case):
    with pytest.raises(Refused) as refusal:
        read_consultation(case["row"])
    assert case["reason"] in str(refusal.value)


def test_refused_rows_are_named_and_the_others_written(tmp_path, capsys):
    lines = [json.dumps(case_row()), "", "{", json.dumps({"prompt": 1}), json.dumps(PLAIN_ROW)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert run(path, tmp_path / "out") == 0
    output = capsys.readouterr()
    assert [line.partition(":")[0] for line in output.err.splitlines()] == ["row 3", "row 4"]
    assert not missing(output.out, "4 rows", "2 refused", "2 cases", "1 dialogues")
    lines = (tmp_path / "out" / "refused.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [json.loads(line) for line in lines]
    assert not missing(output.err, *(f"row {one['row']}: {one['reason']}" for one in kept))
    assert len(kept) == 2


def test_repetitions_are_counted(tmp_path, capsys):
    rows = [PLAIN_ROW, PLAIN_ROW, PLAIN_ROW, case_row(), *turn_rows("knee")]
    assert run(write(tmp_path / "a.jsonl", rows), tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert not missing(said, "3 cases,", "2 dialogues;", "left out: 4 cases", "4 dialogues equal")


def test_more_than_half_refused_is_a_failure_that_writes_only_these(tmp_path, capsys):
    path = write(tmp_path / "a.jsonl", [{"prompt": 1}, case_row(), {"prompt": 2}])
    assert run(path, tmp_path / "out") == 1
    refused = tmp_path / "out" / "refused.jsonl"
    assert not missing(capsys.readouterr().err, "2 of 3", "row 1: ", "row 3: ", refused)
    [kept] = (tmp_path / "out").iterdir()
    rows = [json.loads(line)["row"] for line in kept.read_text(encoding="utf-8").splitlines()]
    assert (kept.name, rows) == ("refused.jsonl", [1, 3])


def test_what_is_there_stays_unless_forced(tmp_path, capsys):
    path, out = write(tmp_path / "a.jsonl", [case_row()]), tmp_path / "out"
    out.mkdir()
    (out / "dialogues.jsonl").write_text("mine")
    assert run(path, out) == 2
    assert "--force" in capsys.readouterr().err
    assert [file.name for file in out.iterdir()] == ["dialogues.jsonl"]
    assert run(path, out, "--force") == 0
    assert sorted(file.name for file in out.iterdir()) == ["cases.parquet", "dialogues.jsonl"]
    assert written(out)[1] == []


def test_a_file_nested_too_deep_is_wrong_usage(tmp_path, capsys):
    (tmp_path / "a.json").write_text("[" * 100_000)
    assert run(tmp_path / "a.json", tmp_path / "out") == 2
    assert "a.json" in capsys.readouterr().err
