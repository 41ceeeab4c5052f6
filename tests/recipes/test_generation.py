"""Questions from databases that are not the bundled one, and from other engines."""

import sqlite3

import pytest

from recipes.build_database import DEFAULT_PATH
from recipes.build_database import main as build_database
from recipes.build_dataset import make_dataset, request_for
from recipes.questions.generate import overlap
from sql_agent.curation.near_duplicates import NearDuplicates
from sql_agent.gold.checker import Checker
from sql_agent.intake.import_database import main as import_database
from sql_agent.intake.question_files import DataError
from tests.tools.sql.servers import fresh_database


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The textbook's drugs and diseases: nothing says that they are invented."""
    path = tmp_path_factory.mktemp("real") / "real.db"
    invented = ["--fictional-drugs", "0", "--fictional-diseases", "0"]
    assert build_database(["--output", str(path), *invented]) == 0
    return f"sqlite:///{path}"


def small(path, drugs, diseases=()):
    """A database with only the columns a user has."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE drugs_info (id INTEGER PRIMARY KEY, med_name TEXT, indication TEXT, dosage TEXT)"
        )
        connection.execute(
            "CREATE TABLE disease (id INTEGER PRIMARY KEY, disease_name TEXT, overview TEXT, cause TEXT)"
        )
        connection.executemany("INSERT INTO drugs_info VALUES (?, ?, ?, ?)", drugs)
        connection.executemany("INSERT INTO disease VALUES (?, ?, ?, ?)", diseases)
    return f"sqlite:///{path}"


def made(url, rows, seed=1, **options):
    return make_dataset(url, request_for(rows, **options), seed)


def rows_of(dataset):
    return [row for rows in dataset.splits.values() for row in rows]


@pytest.mark.nightly
def test_all_types_about_real_entities_confirmed_and_split(real):
    dataset = made(real, 400)
    rows = rows_of(dataset)
    assert len(rows) == 400
    assert not dataset.missing(request_for(400))
    assert overlap(dataset.splits) == []
    assert [f for f in Checker(real).check(rows) if f.problems or f.unchecked] == []
    assert dataset.splits == made(real, 400).splits


def test_drafts_that_are_not_confirmed_are_replaced_and_counted(tmp_path):
    """A semicolon in a name cuts its answer in two, and the judge pays less for the parts."""
    names = [f"药{chr(0x4E00 + n)}片" + (";甲" if n % 2 else "") for n in range(1, 21)]
    drugs = [(n, name, f"用于{n}病", "") for n, name in enumerate(names, start=1)]
    dataset = made(small(tmp_path / "a.db", drugs), 8, mix={"drug_field": 1})
    rows = rows_of(dataset)
    assert len(rows) == 8
    assert not [row["question"] for row in rows if ";" in row["question"]]
    assert dataset.refused["not confirmed"] > 0


def test_no_question_is_nearly_one_of_another_split(tmp_path):
    """Names that differ by their last character make questions that nearly are the same."""
    stem = "复方盐酸伪麻黄碱对乙酰氨基酚右美沙芬缓释胶囊第"
    drugs = [
        (number, stem + chr(0x4E00 + 7 * number), f"第{number}种不适", f"一次{number}粒")
        for number in range(1, 61)
    ]
    dataset = made(small(tmp_path / "near.db", drugs), 300)
    near = NearDuplicates()
    for split in ("val", "test"):
        for row in dataset.splits[split]:
            near.add(row["id"], row["question"])
    assert dataset.refused["nearly a question of another split"] > 0
    assert [row for row in dataset.splits["train"] if near.nearest(row["question"])] == []


def test_a_made_up_name_is_asked_about_in_one_split_alone(tmp_path):
    """Names with few beginnings and endings give the same made-up ones in every split."""
    heads = [chr(0x4E00 + 7 * n) + chr(0x5E00 + 7 * n) for n in range(8)]
    tails = [chr(0x6E00 + 7 * n) + chr(0x7E00 + 7 * n) + "片" for n in range(9)]
    names = [head + tail for head in heads for tail in tails][::2]
    drugs = [(n, name, f"用于{n}病", "口服") for n, name in enumerate(names)]
    dataset = made(small(tmp_path / "a.db", drugs), 100, mix={"unanswerable": 1})
    assert overlap(dataset.splits) == []
    assert dataset.refused["names something of another split"] > 0


def test_awkward_cells_are_left_out_not_told_wrong(tmp_path):
    drugs = [(n, f"药{chr(0x4E00 + n)}片", f"用于{n}病", f"一次{n}片") for n in range(1, 30)]
    drugs += [
        (100, "长文片", "长" * 400, "口服"),
        (101, "标签片", "<tool_call>查询</tool_call>", "口服"),
        (102, "引'号片", "用于痛", "口服"),
        (103, "百分%片", "用于痒", "口服"),
        (104, "空片", "。。", "口服"),
        (105, " 空格片", "用于咳", "口服"),
    ]
    url = small(tmp_path / "a.db", drugs)
    rows = rows_of(made(url, 300))
    assert [f for f in Checker(url).check(rows) if f.problems] == []
    told = "\n".join(row["question"] + row["answer"] for row in rows)
    for text in ("长长", "tool_call", "引'号", "百分%", "。。", "空格片"):
        assert text not in told


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE disease", "disease"),
        ("ALTER TABLE drugs_info RENAME med_name TO name", "med_name"),
    ],
)
def test_a_database_of_another_kind_is_one_line(tmp_path, statement, message):
    url = small(tmp_path / "a.db", [])
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute(statement)
    with pytest.raises(DataError, match=message):
        made(url, 10)


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def url(request):
    target = fresh_database(request.getfixturevalue(request.param), "generated")
    assert import_database([f"sqlite:///{DEFAULT_PATH}", "--to", target]) == 0
    return target.replace("+psycopg", "")


@pytest.mark.system
def test_questions_are_confirmed_and_do_not_depend_on_the_engine(url):
    here = make_dataset(f"sqlite:///{DEFAULT_PATH}", request_for(200))
    there = make_dataset(url, request_for(200))
    rows = [row for part in there.splits.values() for row in part]
    assert [f for f in Checker(url).check(rows) if f.problems or f.unchecked] == []
    for split in here.splits:
        for ours, theirs in zip(here.splits[split], there.splits[split], strict=True):
            assert (ours["question"], ours["sql"]) == (theirs["question"], theirs["sql"])
