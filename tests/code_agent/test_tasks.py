"""Rows without a gold are refused, gold is checked and learned from, and failures have kinds."""

import pytest

from code_agent import validate
from code_agent.agent import AGENT
from code_agent.protocol import Action
from code_agent.task import read_rows, task_of
from data.parquet import write_parquet
from episodes.episode import AgentError
from recipes.drawing import CODE
from tests.code_agent.conftest import SETTINGS
from tests.corpora import cases_of, write_lines
from tests.messages import missing

ROW = {
    "id": "x/1", "task_set": "ehr_demo", "template": "birth_date", "difficulty": "easy", "wording": "seen", "note": "",
    "question": "When?", "files": ["patients.csv"], "gold": '{"kind": "date", "value": "2045-03-09"}',
    "program": "print('2045-03-09')", "sql": "",
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{"gold": "{"}, {"gold": '{"kind": "date"}'}, {"gold": '{"kind": "date", "value": "soon"}'}, {"gold": None},
     {"gold": '{"kind": "integer", "value": 1, "colour": 2}'}, {"gold": "[]"}, {"gold": '{"kind": "date", "value": null}'}],
)  # fmt: skip
def test_a_row_without_a_gold_is_refused_by_its_id(wrong):
    with pytest.raises(AgentError, match="x/1"):
        task_of(ROW | wrong)


@pytest.mark.system
def test_the_validator_passes_what_is_bundled(capsys):
    assert validate.main(["ehr_demo", "--mode", "val"]) == 0
    assert validate.main(["calculators"]) == 0
    assert "val: 96 rows, 0 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"program": "print('2045-03-10')"}, ["2045-03-10", "2045-03-09"]),
     ({"program": "print(1 / 0)"}, ["ZeroDivisionError"]),
     ({"sql": "SELECT dob FROM patients LIMIT 2"}, ["SQL"]),
     ({"sql": "SELECT colour FROM patients"}, ["SQL", "colour"])],
)  # fmt: skip
def test_the_validator_names_a_wrong_gold(tmp_path, capsys, wrong, said):
    write_parquet([ROW | wrong], tmp_path / "test.parquet", CODE)
    assert validate.main(["ehr_demo", "--mode", "test", "--questions", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert not missing(output.out, "x/1", *said)
    assert "1 problems" in output.err


ROWS = read_rows(AGENT.splits["train"])


def test_gold_rows_are_supervised_data():
    [first, *_] = AGENT.demonstrations("policy", ROWS[:3], SETTINGS)
    assert first.learn == [True, True]
    with pytest.raises(AgentError, match="'patient'"):
        AGENT.demonstrations("patient", ROWS[:3], SETTINGS)


def test_a_file_of_episodes_is_read_or_named(tmp_path):
    action = {"role": "assistant", "content": str(Action("submit"))}
    messages = [{"role": "user", "content": "?"}, action]
    path = write_lines(tmp_path / "sft.jsonl", [{"messages": messages}])
    [kept] = AGENT.dialogues(path, SETTINGS)
    assert (kept.messages, kept.learn) == (messages, [True])
    for rows, said in ([{"messages": messages[:1]}], "line 1"), ([], "has no episodes"):
        with pytest.raises(AgentError, match=said):
            AGENT.dialogues(write_lines(path, rows), SETTINGS)


@pytest.mark.parametrize(
    ("score", "answer", "facts", "kind"), cases_of(__file__, "corpus/failures")
)
def test_kinds_of_failure(score, answer, facts, kind):
    record = {
        "score": score,
        "answer": answer,
        "facts": {"loops": 0.0, "runs": 1.0, "printed_a_value": 1.0} | facts,
    }
    assert AGENT.failure(record) == kind
