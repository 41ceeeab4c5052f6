"""Rewordings by an LLM: taken when faithful, refused when not, never asked for twice."""

import json
import os

import pytest

from common.settings import load_settings
from recipes.build_database import DEFAULT_PATH
from recipes.build_dataset import main
from recipes.questions.entities import Mentions
from recipes.questions.generate import overlap
from recipes.questions.paraphrase import is_faithful, reword
from sql_agent.gold.checker import Checker
from sql_agent.intake.question_files import load_rows
from tests.common.llm_server import KEY, Fault
from tests.sql_agent.curation.conftest import llm, teacher  # noqa: F401 (fixtures)

ROW = {"question": "朵莎洛片怎么保存？", "entities": '["朵莎洛片"]'}


@pytest.mark.parametrize(
    ("text", "faithful"),
    [
        ("想问下朵莎洛片平时放哪儿好呢？", True),
        ("朵莎洛平时放哪儿好呢？", False),
        ("朵莎洛片和米兰诺片怎么保存？", False),
        ("<think>朵莎洛片怎么保存", False),
        ("朵莎洛片" * 30, False),
        ("", False),
    ],
)
def test_faithful(text, faithful):
    assert is_faithful(ROW, text, Mentions(["朵莎洛片", "米兰诺片"])) is faithful


def reply(body):
    """A faithful rewording for most questions; every fourth loses its names."""
    question = body["messages"][1]["content"]
    text = f"医生您好,想请教:{question.rstrip('？。')},谢谢啦"
    if len(question) % 4 == 0:
        text = "这个怎么样呢,请讲讲"
    return json.dumps({"question": text}, ensure_ascii=False)


def test_a_rewording_that_is_nearly_a_question_of_another_split_is_refused():
    """Of its own split it is taken, and what is taken is compared with what comes after."""

    theirs, ours = "请问这种药平时应该怎么保存才好呢？", "我想知道这种药物的储存条件是什么"
    row = {"entities": "[]", "difficulty": "easy"}
    train = [row | {"id": "a", "question": theirs}, row | {"id": "b", "question": "别的什么事情"}]
    splits = {"train": train, "test": [row | {"id": "c", "question": ours}]}
    replies = {"b": theirs.rstrip("？"), "c": theirs.replace("请问", "请问，")}
    assert reword(splits, replies, Mentions([])) == 1
    assert (train[1]["question"], splits["test"][0]["question"]) == (replies["b"], ours)


@pytest.fixture
def build(teacher, monkeypatch, capsys):  # noqa: F811
    """The command, in this process: its exit code and what it printed."""
    for name, value in teacher.items():
        monkeypatch.setenv(name, value)

    def run(folder):
        url = f"sqlite:///{DEFAULT_PATH}"
        words = ["--db", url, "--output", str(folder), "--rows", "80", "--paraphrase", "0.5"]
        load_settings.cache_clear()
        return main(words), capsys.readouterr()

    return run


@pytest.mark.system
def test_a_share_is_reworded_and_the_rows_stay_true(llm, build, tmp_path):  # noqa: F811
    llm.answer = reply
    code, said = build(tmp_path)
    assert code == 0, said.err
    splits = {split: load_rows(tmp_path / f"{split}.parquet") for split in ("train", "val", "test")}
    rows = [row for part in splits.values() for row in part]
    reworded = [row for row in rows if row["question"].startswith("医生您好")]
    assert 20 < len(reworded) < 50
    assert f"reworded: {len(reworded)} of {len(llm.requests)} questions" in said.out
    assert not [row for row in rows if row["question"].startswith("这个")]
    assert {row["difficulty"] for row in reworded} <= {"mid", "hard"}
    assert overlap(splits) == []
    assert [f for f in Checker(f"sqlite:///{DEFAULT_PATH}").check(rows) if f.problems] == []


@pytest.mark.system
def test_after_a_failure_the_same_command_goes_on(llm, build, tmp_path):  # noqa: F811
    llm.answer = reply
    llm.faults = [Fault(400, body=f'{{"error": {{"message": "no, {KEY}"}}}}')]
    code, said = build(tmp_path)
    assert code == 1
    assert "400" in said.err
    assert KEY not in said.err + said.out
    assert [path.name for path in tmp_path.glob("*.parquet")] == []
    code, said = build(tmp_path)
    assert code == 0, said.err
    asked = len(llm.requests)
    straight = tmp_path / "straight"
    straight.mkdir()
    assert build(straight)[0] == 0
    assert len(llm.requests) == asked
    for path in straight.glob("*.parquet"):
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_without_a_model_it_says_what_to_set(build, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("TEACHER")]:
        monkeypatch.delenv(name)
    code, said = build(tmp_path)
    assert code == 2
    assert "TEACHER_MODEL" in said.err
