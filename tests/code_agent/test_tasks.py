"""Rows without a gold are refused, and the validator says which gold is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from code_agent import validate
from code_agent.task import task_of
from data.parquet import write_parquet
from episodes.episode import AgentError
from recipes.drawing import CODE
from tests.messages import missing

ROW = {
    "id": "x/1", "task_set": "ehr_demo", "template": "birth_date", "difficulty": "easy", "wording": "seen", "note": "",
    "question": "When?", "files": ["patients.csv"], "gold": '{"kind": "date", "value": "2045-03-09"}',
    "program": "print('2045-03-09')", "sql": "",
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{"gold": "{"}, {"gold": '{"kind": "date"}'}, {"gold": '{"kind": "date", "value": "soon"}'}, {"gold": None},
     {"gold": '{"kind": "integer", "value": 1, "colour": 2}'}, {"gold": "[]"}],
)  # fmt: skip
def test_a_row_without_a_gold_is_refused_by_its_id(wrong: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match="x/1"):
        task_of(ROW | wrong)


@pytest.mark.system
def test_the_validator_passes_what_is_bundled(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main(["ehr_demo", "--mode", "val"]) == 0
    assert validate.main(["calculators"]) == 0
    assert "val: 96 questions, 0 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"program": "print('2045-03-10')"}, ["2045-03-10", "2045-03-09"]),
     ({"program": "print(1 / 0)"}, ["ZeroDivisionError"]),
     ({"sql": "SELECT dob FROM patients LIMIT 2"}, ["SQL"]),
     ({"sql": "SELECT colour FROM patients"}, ["SQL", "colour"])],
)  # fmt: skip
def test_the_validator_names_a_wrong_gold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, str], said: list[str]
) -> None:
    write_parquet([ROW | wrong], tmp_path / "test.parquet", CODE)
    assert validate.main(["ehr_demo", "--mode", "test", "--questions", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert not missing(output.out, "x/1", *said)
    assert "1 problems" in output.err
