"""The import command: what it writes and refuses, all or nothing, even when killed."""

import contextlib
import re
import signal
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.settings import ROOT
from recipes.build_database import DEFAULT_PATH
from sql_agent.intake.cells import CellError, to_text
from sql_agent.intake.import_database import main
from sql_agent.intake.staging import Staging
from sql_agent.tables import TABLES
from tests.messages import missing
from tests.sql_agent.intake.books import save_book, save_csv
from tools.sql.settings import DEFAULT_DATABASE

COLUMNS = ["药品名称", "适应症", "副作用"]
ROWS = [["甲片", "发热", "恶心"], ["乙片", "咳嗽", ""]]


def write_csv(path, rows, columns=COLUMNS):
    return str(save_csv(path, [columns, *rows]))


@pytest.fixture
def source(tmp_path):
    return write_csv(tmp_path / "药品.csv", ROWS)


@pytest.fixture
def target(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target" / "my.db"


def url(path):
    return f"sqlite:///{path}"


def read(path, table="drugs_info", columns="id, med_name, indication, adverse_reactions, source"):
    with sqlite3.connect(path) as connection:
        return connection.execute(f"SELECT {columns} FROM {table} ORDER BY id").fetchall()


def test_a_file_becomes_the_table(source, target, capsys):
    assert main([source, "--to", url(target)]) == 0
    assert read(target) == [
        (1, "甲片", "发热", "恶心", "imported"),
        (2, "乙片", "咳嗽", None, "imported"),
    ]
    assert [path.name for path in target.parent.iterdir()] == ["my.db"]
    out = capsys.readouterr().out
    assert "副作用 -> adverse_reactions" in out
    assert not missing(out, "2 rows written", "drugs_info")
    with sqlite3.connect(target) as connection:
        found = [row[1] for row in connection.execute("PRAGMA table_info(drugs_info)")]
        indexes = [row[1] for row in connection.execute("PRAGMA index_list(drugs_info)")]
    assert found == [*TABLES["drugs_info"]]
    assert indexes == ["drugs_info_med_name"]


def test_every_rejected_value_is_named_and_nothing_is_written(tmp_path, target, capsys):
    rows = [["甲片", "发热", "恶\0心"], ["", "x", "y"], ["甲片", "a"], ["", " ", ""]]
    rows += [["丙" * 256, "", ""], ["丁片", "", ""], ["丁片", "", ""], ["戊片", "x", "y", ""]]
    source = write_csv(tmp_path / "a.csv", rows)
    assert main([source, "--to", url(target)]) == 1
    output = capsys.readouterr()
    assert not missing(output.out, "1 rows ready", "1 duplicate", "1 empty", "5 rejected")
    found = {line.split(":")[0].strip(): line for line in output.out.splitlines()}
    assert "U+0000" in found["row 2, column 副作用 (adverse_reactions)"]
    assert "empty" in found["row 3, column 药品名称 (med_name)"]
    assert not missing(found["row 4"] + found["row 9"], "2 cells", "4 cells")
    assert "empty" in found["row 5"]
    assert "256" in found["row 6, column 药品名称 (med_name)"]
    assert "row 7" in found["row 8"]
    assert "--skip-rejected" in output.err
    assert not target.exists()
    assert main([source, "--to", url(target), "--skip-rejected"]) == 0
    assert [row[1] for row in read(target)] == ["丁片"]
    assert [path.name for path in target.parent.iterdir()] == ["my.db"]


def test_existing_rows_are_kept_replaced_or_added_to_as_asked(source, tmp_path, target, capsys):
    assert main([source, "--to", url(target)]) == 0
    other = write_csv(tmp_path / "b.csv", [["丙片", "z", ""]])
    assert main([other, "--to", url(target)]) == 2
    assert not missing(capsys.readouterr().err, "--replace", "--append")
    assert len(read(target)) == 2
    assert main([other, "--to", url(target), "--append"]) == 0
    assert read(target)[-1] == (3, "丙片", "z", None, "imported")
    assert main([other, "--to", url(target), "--replace"]) == 0
    assert [row[:2] for row in read(target)] == [(1, "丙片")]


@pytest.mark.parametrize("mode", ["--replace", "--append"])
@pytest.mark.parametrize("rows", [[], [["", "", ""], ["合计：3种", "", ""]], [["a\0", "x", "y"]]])
def test_a_file_without_a_ready_row_changes_nothing(source, tmp_path, target, capsys, mode, rows):
    assert main([source, "--to", url(target)]) == 0
    before = target.read_bytes()
    other = write_csv(tmp_path / "b.csv", rows)
    for more in ([], ["--dry-run"]):
        arguments = [other, "--to", url(target), mode, "--skip-rejected", *more]
        capsys.readouterr()
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert other in error
        assert error.count("\n") == 1
        assert target.read_bytes() == before


def test_only_what_is_missing_is_filled(source, target, capsys):
    assert main([source, "--to", url(target)]) == 0
    mine = read(target)
    assert main([f"sqlite:///{DEFAULT_PATH}", "--to", url(target), "--only-missing"]) == 0
    assert read(target) == mine
    diseases = read(target, "disease", "count(*)")
    assert diseases[0][0] > 300
    assert main([f"sqlite:///{DEFAULT_PATH}", "--to", url(target), "--only-missing"]) == 0
    assert read(target) == mine
    assert read(target, "disease", "count(*)") == diseases
    assert not missing(capsys.readouterr().out, "drugs_info", "disease")


def test_rows_that_are_added_are_numbered_after_the_largest_id(source, tmp_path, target, capsys):
    """By how many there are, a number would be given twice where some are missing."""
    known = write_csv(tmp_path / "a.csv", [["7", "丁片"], ["3", "戊片"]], ["ID", "drug_name"])
    assert main([known, "--to", url(target)]) == 0
    assert main([source, "--to", url(target), "--append"]) == 0
    assert [row[0] for row in read(target)] == [3, 7, 8, 9]
    assert main([known, "--to", url(target), "--append"]) == 0
    assert [row[0] for row in read(target)] == [3, 7, 8, 9, 10, 11], "its own ids are taken"


def test_where_a_part_has_no_ids_all_rows_are_numbered_anew(tmp_path, target, capsys):
    """Kept beside new numbers, an id would be given twice, and the import fail."""
    with contextlib.closing(sqlite3.connect(tmp_path / "source.db")) as other, other:
        other.execute("CREATE TABLE one (id, drug_name, indication)")
        other.execute("CREATE TABLE two (drug_name, indication)")
        other.executemany("INSERT INTO one VALUES (?, ?, ?)", [(3, "甲片", "a"), (1, "乙片", "b")])
        other.execute("INSERT INTO two VALUES ('丙片', 'c')")
    assert main([url(tmp_path / "source.db"), "--to", url(target)]) == 0
    found = read(target)
    assert [row[0] for row in found] == [1, 2, 3]
    assert {row[1] for row in found} == {"甲片", "乙片", "丙片"}


def test_keys_of_the_source_are_kept_and_must_be_keys(tmp_path, target, capsys):
    columns = ["ID", "drug_name"]
    source = write_csv(tmp_path / "a.csv", [["7", "甲片"], ["3", "乙片"]], columns)
    assert main([source, "--to", url(target)]) == 0
    assert [row[:2] for row in read(target)] == [(3, "乙片"), (7, "甲片")]
    rows = [["7", "甲片"], ["7", "丁片"], ["x", "乙片"], ["", "丙片"]]
    rows += [["0", "戊片"], ["99999999999", "己片"]]
    other = write_csv(tmp_path / "b.csv", rows, columns)
    assert main([other, "--to", url(target), "--replace"]) == 1
    out = capsys.readouterr().out
    found = [line.strip() for line in out.splitlines() if "rejected:" in line]
    assert [line.split(",")[0] for line in found] == [f"row {number}" for number in range(3, 8)]
    assert "7" in found[0]
    assert "'x'" in found[1]
    assert len(read(target)) == 2


def test_another_database_fills_both_tables(tmp_path, target, capsys):
    assert main([url(DEFAULT_PATH), "--to", url(target), "--dry-run"]) == 0
    assert list(target.parent.iterdir()) == []
    assert main([url(DEFAULT_PATH), "--to", url(target)]) == 0
    for table, columns in TABLES.items():
        listed = ", ".join(columns)
        assert read(target, table, listed) == read(DEFAULT_PATH, table, listed)
    assert main([url(DEFAULT_PATH), "--to", url(target), "--part", "disease", "--replace"]) == 0
    assert main([url(target), "--to", url(target), "--replace"]) == 0
    assert read(target, "disease", "disease_name") == read(DEFAULT_PATH, "disease", "disease_name")


def test_rows_are_not_appended_behind_ids_that_are_no_numbers(source, target, capsys):
    columns = ", ".join(f"{name} TEXT" for name in TABLES["drugs_info"])
    with sqlite3.connect(target) as connection:
        connection.execute(f"CREATE TABLE drugs_info ({columns})")
        connection.execute("INSERT INTO drugs_info (id, med_name) VALUES ('abc', '旧药')")
    assert main([source, "--to", url(target), "--append"]) == 1
    assert "'abc'" in capsys.readouterr().err
    assert read(target, columns="id, med_name") == [("abc", "旧药")]


def failing_rows():
    yield {"med_name": "新药"}
    raise KeyboardInterrupt


def test_ctrl_c_is_said_in_one_line(source, target, capsys, monkeypatch):
    monkeypatch.setattr(Staging, "rows", lambda self: failing_rows())
    assert main([source, "--to", url(target)]) == 130
    assert capsys.readouterr().err.count("\n") == 1
    assert list(target.parent.iterdir()) == []


@pytest.mark.system
def test_a_target_another_program_writes_to_is_left_alone(source, target, capsys):
    assert main([source, "--to", url(target)]) == 0
    other = sqlite3.connect(target, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert main([source, "--to", url(target), "--append"]) == 1
    assert "locked" in capsys.readouterr().err
    other.close()
    assert len(read(target)) == 2


HELD = """
import sys

from sql_agent.intake.import_database import main
from sql_agent.intake import target


def until_held(rows):
    for number, row in enumerate(rows):
        if number == 10_000:
            print("held", flush=True)
            sys.stdin.read()
        yield row


insert = target.insert_rows
target.insert_rows = lambda to, table, rows: insert(to, table, until_held(rows))
sys.exit(main(sys.argv[1:]))
"""


def killed_import(arguments):
    """Kill the command, with no warning, while it is writing its 10,000th row."""
    command, pipe = [sys.executable, "-c", HELD, *arguments], subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
    output = []
    for line in process.stdout:
        if line == "held\n":
            break
        output.append(line)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "the import ended before it was killed"
    return "".join(output)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    rows = [[f"药{number}片", "发热" * 100, "恶心"] for number in range(12_000)]
    return write_csv(tmp_path_factory.mktemp("many") / "a.csv", rows)


@pytest.mark.system
@pytest.mark.parametrize("mode", [None, "--append", "--replace"])
def test_killed_while_writing_the_target_is_as_before(many, source, target, mode):
    if mode:
        assert main([source, "--to", url(target)]) == 0
    arguments = [many, "--to", url(target), *([mode] if mode else [])]
    assert "12000 rows ready" in killed_import(arguments)
    assert target.stat().st_size > 1_000_000, "a transaction is half done"
    with sqlite3.connect(target) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
        found = connection.execute(tables).fetchall()
    assert found == ([("drugs_info",), ("disease",)] if mode else [])
    if mode:
        assert [row[1] for row in read(target)] == ["甲片", "乙片"]
    assert main(arguments) == 0
    assert len(read(target)) == 12_000 + 2 * (mode == "--append")
    assert [path.name for path in target.parent.iterdir()] == ["my.db"]


def test_tables_of_another_shape_and_files_of_another_kind(source, target, capsys):
    with sqlite3.connect(target) as connection:
        connection.execute("CREATE TABLE drugs_info (id INTEGER, med_name TEXT)")
    assert main([source, "--to", url(target)]) == 2
    assert "adverse_reactions" in capsys.readouterr().err
    target.write_bytes(b"no database" * 100)
    assert main([source, "--to", url(target)]) == 1
    assert "not a database" in capsys.readouterr().err
    assert main([source, "--to", url(target.parent / "no" / "a.db")]) == 2
    assert str(target.parent / "no") in capsys.readouterr().err
    assert main([source, "--to", DEFAULT_DATABASE]) == 2
    assert "--to sqlite:///my/drugs.db" in capsys.readouterr().err


def test_a_sheet_of_other_columns_may_be_left_out_by_naming_another(tmp_path, target, capsys):
    book = save_book(tmp_path / "药房.xlsx", [COLUMNS, *ROWS], "西药房目录")
    stopped = book.create_sheet("停用药品")
    stopped.append(["品名", "停用原因", "停用日期"])
    stopped.append(["丙片", "召回", "2024-05-01"])
    book.save(tmp_path / "药房.xlsx")
    command = [str(tmp_path / "药房.xlsx"), "--to", url(target)]
    assert main(command) == 2
    assert not missing(capsys.readouterr().err, "停用药品", "--mapping", "--part 西药房目录")
    assert main([*command, "--part", "西药房目录"]) == 0
    assert len(read(target)) == 2


ODD = st.sampled_from(["<p>", "&amp;", "'; DROP TABLE x; --", "%s"])
CELLS = st.text(st.characters(codec="utf-8"), max_size=10) | ODD


def cleaned(cell: str) -> str | None:
    with contextlib.suppress(CellError):  # then the row is rejected
        return to_text(cell)
    return None


ONE_FOLDER = [HealthCheck.function_scoped_fixture]


@settings(suppress_health_check=ONE_FOLDER, deadline=None, max_examples=40)
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6))
def test_any_cells_arrive_unchanged_or_are_reported(tmp_path, rows, capsys):
    target = tmp_path / "any.db"
    target.unlink(missing_ok=True)
    source = write_csv(tmp_path / "a.csv", rows)
    capsys.readouterr()
    code = main([source, "--to", url(target), "--skip-rejected", "--encoding", "utf-8"])
    stored = [row[1:4] for row in read(target)] if target.exists() else []
    assert code == (0 if stored else 1)
    given = [tuple(cleaned(cell) for cell in row) for row in rows]
    assert [row for row in stored if row not in given] == []
    assert len(stored) == len(set(stored))
    [counted] = re.findall("^a -> drugs_info: (.*)", capsys.readouterr().out, re.MULTILINE)
    numbers = [int(number) for number in re.findall(r"\d+", counted)]
    assert sum(numbers) == len(rows)
