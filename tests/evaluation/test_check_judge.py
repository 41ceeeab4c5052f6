"""The command that checks an agent's judge, on real agents and against a real HTTP judge; and its
table in the docs.

.venv/bin/python -m tests.evaluation.test_check_judge      # writes the table of docs/rewards.md anew

Keeps of docs/rewards.md, "Before a run": a judge that pays dishonest answers is refused, and the
table is the code's.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from common.settings import ROOT, load_settings
from data.build_dataset import main as build_dataset
from episodes import registry
from evaluation.check_judge import HEADER, main
from evaluation.tables import table
from tests.digits_agent.agent import AGENT as DIGITS
from tests.scoring.judge_servers import Server
from tests.serving import serving

PAGE = ROOT / "docs" / "rewards.md"
TABLE = re.compile(rf"^{re.escape(table([HEADER])[0])}\n(?:\|.*\n)+", re.MULTILINE)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The default settings: no judge but the offline one."""
    for name in (
        "DATABASE_URL",
        "TEACHER_MODEL",
        "REWARD_MODEL_URL",
        "SECOND_JUDGE_MODEL",
        "REWARD_TERMS",
    ):
        monkeypatch.delenv(name, raising=False)
    registry.register(DIGITS)
    load_settings.cache_clear()
    yield
    load_settings.cache_clear()


@pytest.fixture
def generous(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A reward model that gives everything full marks."""
    server = Server()
    server.replies = [(200, '{"score": 1.0}')]
    monkeypatch.setenv("REWARD_MODEL_URL", f"{server.url}/score")
    with serving(server):
        yield server


def test_the_offline_judge_passes_on_the_bundled_questions_and_the_page_shows_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["sql"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert shown.err.splitlines()[-1] == "200 tasks: nothing wrong"
    assert TABLE.findall(PAGE.read_text(encoding="utf-8")) == [shown.out], (
        f"write it anew: {__doc__}"
    )


@pytest.mark.parametrize("table", ["drugs_info", "disease"])
def test_the_offline_judge_passes_on_one_table_of_real_names(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a user's own table is: names that end like no other, short texts, nothing invented.

    One draw of questions: of four about drugs two were refused, for 3 and 4 of 134
    (docs/rewards.md).
    """
    database = shutil.copy(ROOT / "data" / "medical.db", tmp_path / "own.db")
    with closing(sqlite3.connect(database)) as connection, connection:
        for name in ("drugs_info", "disease"):
            connection.execute(
                f"DELETE FROM {name} WHERE source <> 'textbook' OR ? <> ?", (name, table)
            )
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{database}")
    load_settings.cache_clear()
    flags = ["--rows", "train=200,val=8,test=8", "--seed", "2"]
    assert build_dataset(["--output", str(tmp_path / "questions"), *flags]) == 0
    assert main(["sql", "--data", str(tmp_path / "questions" / "train.parquet")]) == 0, (
        capsys.readouterr().err
    )


def test_an_agent_that_brings_only_gold_and_one_dishonest_kind_is_checked_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["digits"]) == 0
    assert (
        "| gold | yes | 64 | 1.00 | 1.00 | 0.80 | 1.00 |\n| others | no | 64 | 0.00 | 0.10 | 0.50 | 0.00 |"
        in (capsys.readouterr().out)
    )
    assert main(["digits", "--sample", "3"]) == 0
    assert "| gold | yes | 3 | " in capsys.readouterr().out


def test_a_judge_that_likes_everything_fails_after_few_calls(
    generous: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql"]) == 1
    shown = capsys.readouterr()
    assert "on 5 of 5 tasks an honest answer does not beat each dishonest one" in shown.err
    assert "TEACHER_MODEL" in shown.err
    assert "--draft-answers" in shown.err
    assert "drop such rows" in shown.err
    assert "Traceback" not in shown.err
    assert 10 < len(generous.requests) <= 30


def test_cases_that_the_patient_knows_nothing_of_are_refused(
    case_without_facts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["consultation", "--data", str(case_without_facts)]) == 2
    assert "1 of 1 cases hold no facts" in capsys.readouterr().err


def test_a_judge_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REWARD_MODEL_URL", "http://127.0.0.1:9/score")
    monkeypatch.setenv("JUDGE_TIMEOUT", "5")
    assert main(["sql"]) == 1
    assert "the reward_model judge gave no score" in capsys.readouterr().err


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["sqll"], ["sql", "--sample", "0"], ["sql", "--dta", "x"]):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ended.value.code == 2
    assert main(["sql", "--data", "nowhere.parquet"]) == 2
    assert "nowhere.parquet does not exist" in capsys.readouterr().err


if __name__ == "__main__":
    import subprocess
    import sys

    told = subprocess.run(
        [sys.executable, "-m", "evaluation.check_judge", "sql"], stdout=subprocess.PIPE, text=True
    )
    PAGE.write_text(
        TABLE.sub(lambda _: told.stdout, PAGE.read_text(encoding="utf-8")), encoding="utf-8"
    )
