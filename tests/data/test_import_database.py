"""The import command: what it writes, what it refuses, and that it writes all or nothing, even when
killed.
"""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.build_database import DEFAULT_PATH
from data.database.schema import TABLES
from data.import_database import main
from data.intake.staging import Staging
from data.intake.target import REPLACE, Target, TargetError

COLUMNS = ["药品名称", "适应症", "副作用"]
ROWS = [["甲片", "发热", "恶心"], ["乙片", "咳嗽", ""]]


def write_csv(path, rows, columns=COLUMNS):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return str(path)


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
    assert "2 rows written to drugs_info" in out
    with sqlite3.connect(target) as connection:
        found = [row[1] for row in connection.execute("PRAGMA table_info(drugs_info)")]
        indexes = [row[1] for row in connection.execute("PRAGMA index_list(drugs_info)")]
    assert found == [*TABLES["drugs_info"]]
    assert indexes == ["drugs_info_med_name"]


def test_every_rejected_value_is_named_and_nothing_is_written(tmp_path, target, capsys):
    rows = [
        ["甲片", "发热", "恶\0心"],
        ["", "x", "y"],
        ["甲片", "a"],
        ["", " ", ""],
        ["丙" * 256, "", ""],
        ["丁片", "", ""],
    ]
    source = write_csv(tmp_path / "a.csv", [*rows, rows[-1]])
    report = tmp_path / "report.tsv"
    assert main([source, "--to", url(target), "--report", str(report)]) == 1
    output = capsys.readouterr()
    assert "1 rows ready, 1 duplicate, 1 empty, 4 rejected" in output.out
    assert "row 2, column 副作用 (adverse_reactions): rejected: U+0000" in output.out
    assert "row 3, column 药品名称 (med_name): rejected: empty" in output.out
    assert "row 4: rejected: 2 cells, the header has 3" in output.out
    assert "row 5: empty" in output.out
    assert "row 6, column 药品名称 (med_name): rejected: 256 characters" in output.out
    assert "row 8: duplicate: same as row 7 of a" in output.out
    assert "--skip-rejected" in output.err
    assert not target.exists()
    assert len(report.read_text(encoding="utf-8").splitlines()) == 7
    assert main([source, "--to", url(target), "--skip-rejected"]) == 0
    assert [row[1] for row in read(target)] == ["丁片"]
    assert [path.name for path in target.parent.iterdir()] == ["my.db"]


def test_long_lists_of_findings_are_cut_on_screen(tmp_path, target, capsys):
    source = write_csv(tmp_path / "a.csv", [["甲片", "x", ""]] * 40)
    assert main([source, "--to", url(target)]) == 0
    out = capsys.readouterr().out
    assert "row 22: duplicate" in out
    assert "row 23: duplicate" not in out
    assert "... 39 rows duplicate in all" in out


def test_existing_rows_are_kept_replaced_or_added_to_as_asked(source, tmp_path, target, capsys):
    assert main([source, "--to", url(target)]) == 0
    other = write_csv(tmp_path / "b.csv", [["丙片", "z", ""]])
    assert main([other, "--to", url(target)]) == 1
    assert "--replace or --append" in capsys.readouterr().err
    assert len(read(target)) == 2
    assert main([other, "--to", url(target), "--append", "--label", "医院"]) == 0
    assert read(target)[-1] == (3, "丙片", "z", None, "医院")
    assert main([other, "--to", url(target), "--replace"]) == 0
    assert [row[:2] for row in read(target)] == [(1, "丙片")]


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


def test_a_dry_run_writes_nothing(source, target, capsys):
    assert main([source, "--to", url(target), "--dry-run"]) == 0
    assert "2 rows ready" in capsys.readouterr().out
    assert list(target.parent.iterdir()) == []


def test_a_target_that_must_not_be_written_is_said_before_anything_is_read(source, target, capsys):
    """A source of millions of rows takes minutes."""
    assert main([source, "--to", url(target)]) == 0
    capsys.readouterr()
    assert main([source, "--to", url(target), "--dry-run"]) == 1
    shown = capsys.readouterr()
    assert "--replace or --append" in shown.err
    assert "rows ready" not in shown.out


def test_keys_of_the_source_are_kept_and_must_be_keys(tmp_path, target, capsys):
    columns = ["ID", "drug_name"]
    assert (
        main(
            [
                write_csv(tmp_path / "a.csv", [["7", "甲片"], ["3", "乙片"]], columns),
                "--to",
                url(target),
            ]
        )
        == 0
    )
    assert [row[:2] for row in read(target)] == [(3, "乙片"), (7, "甲片")]
    rows = [
        ["7", "甲片"],
        ["7", "丁片"],
        ["x", "乙片"],
        ["", "丙片"],
        ["0", "戊片"],
        ["99999999999", "己片"],
    ]
    assert (
        main([write_csv(tmp_path / "b.csv", rows, columns), "--to", url(target), "--replace"]) == 1
    )
    out = capsys.readouterr().out
    assert "row 3, column id: rejected: 7 is already the id of an earlier row" in out
    assert "row 4, column ID (id): rejected: 'x', expected a whole number" in out
    assert "row 5, column ID (id): rejected: empty" in out
    assert out.count("rejected:") == 5
    assert len(read(target)) == 2


def test_another_database_fills_both_tables(tmp_path, target, capsys):
    assert main([url(DEFAULT_PATH), "--to", url(target)]) == 0
    for table, columns in TABLES.items():
        assert read(target, table, ", ".join(columns)) == read(
            DEFAULT_PATH, table, ", ".join(columns)
        )
    assert main([url(DEFAULT_PATH), "--to", url(target), "--table", "disease", "--replace"]) == 0
    assert "left out: drugs_info" in capsys.readouterr().out
    assert main([url(target), "--to", url(target), "--replace"]) == 0
    assert read(target, "disease", "disease_name") == read(DEFAULT_PATH, "disease", "disease_name")


def failing_rows():
    yield {"med_name": "新药"}
    raise KeyboardInterrupt


def test_a_failed_write_leaves_the_target_as_it_was(source, target):
    assert main([source, "--to", url(target)]) == 0
    before = target.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        Target(url(target), REPLACE).write({"drugs_info": failing_rows()}, "x")
    assert target.read_bytes() == before
    new = target.with_name("new.db")
    with pytest.raises(TargetError, match="nothing written"):
        Target(url(new)).write({"drugs_info": [{"id": 1, "med_name": "a"}] * 2}, "x")
    assert [path.name for path in target.parent.iterdir()] == ["my.db"]


def test_rows_that_came_after_the_check_are_not_added_to(tmp_path):
    """Another import may have filled the table meanwhile."""
    file = tmp_path / "shared.db"
    target = Target(url(file))
    target.check(TABLES)
    Target(url(file)).write({"drugs_info": [{"id": 1, "med_name": "a"}]}, "x")
    with pytest.raises(TargetError, match="has rows"):
        target.write({"drugs_info": [{"id": 2, "med_name": "b"}]}, "x")


def test_ctrl_c_is_said_in_one_line(source, target, capsys, monkeypatch):
    monkeypatch.setattr(Staging, "rows", lambda self, table: failing_rows())
    assert main([source, "--to", url(target)]) == 130
    assert capsys.readouterr().err == "import_database: interrupted; the target is unchanged\n"
    assert list(target.parent.iterdir()) == []


def test_a_target_another_program_writes_to_is_left_alone(source, target, capsys):
    assert main([source, "--to", url(target)]) == 0
    other = sqlite3.connect(target, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert main([source, "--to", url(target), "--append"]) == 1
    assert "nothing written: database is locked" in capsys.readouterr().err
    other.close()
    assert len(read(target)) == 2


def killed_import(arguments, moment, environment=None):
    """Run the command as a process and kill it, with no warning, once `moment(process)` holds."""
    command = [sys.executable, "-u", "-m", "data.import_database", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    end = time.monotonic() + 120
    while process.poll() is None and not moment(process) and time.monotonic() < end:
        time.sleep(0.002)
    process.kill()
    output, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL, "the import ended before it was killed"
    return output


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    rows = [[f"药{number}片", "发热" * 100, "恶心"] for number in range(12_000)]
    return write_csv(tmp_path_factory.mktemp("many") / "a.csv", rows)


def test_killed_while_reading_nothing_is_left(many, target, tmp_path):
    waiting = tmp_path / "waiting"
    waiting.mkdir()

    def has_read_some(process):
        for link in Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if str(waiting) in os.readlink(link) and link.stat().st_size > 1_000_000:
                    return True
        return False

    killed_import(
        [many, "--to", url(target)], has_read_some, os.environ | {"SQLITE_TMPDIR": str(waiting)}
    )
    assert list(waiting.iterdir()) == []
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("mode", [None, "--append", "--replace"])
def test_killed_while_writing_the_target_is_as_before(many, source, target, mode):
    if mode:
        assert main([source, "--to", url(target)]) == 0
    arguments = [many, "--to", url(target), *([mode] if mode else [])]
    output = killed_import(
        arguments, lambda _: target.exists() and target.stat().st_size > 1_000_000
    )
    assert "12000 rows ready" in output
    assert "rows written" not in output
    with sqlite3.connect(target) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
    assert tables == ([("drugs_info",), ("disease",)] if mode else [])
    if mode:
        assert [row[1] for row in read(target)] == ["甲片", "乙片"]
    assert main(arguments) == 0
    assert len(read(target)) == 12_000 + 2 * (mode == "--append")
    assert [path.name for path in target.parent.iterdir()] == ["my.db"]


def test_tables_of_another_shape_and_files_of_another_kind(source, target, capsys):
    with sqlite3.connect(target) as connection:
        connection.execute("CREATE TABLE drugs_info (id INTEGER, med_name TEXT)")
    assert main([source, "--to", url(target)]) == 1
    assert "lacks the columns adverse_reactions" in capsys.readouterr().err
    target.write_bytes(b"no database" * 100)
    assert main([source, "--to", url(target)]) == 1
    assert "not a database" in capsys.readouterr().err
    assert main([source, "--to", url(target.parent / "no" / "a.db")]) == 1
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    "to",
    [
        "oracle://u:canary@h/d",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?uri=true",
        "no url",
        "mysql+no://u:canary@h/d",
    ],
)
def test_targets_that_can_not_be_used_are_wrong_usage(source, to, capsys):
    assert main([source, "--to", to]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "canary" not in error


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["名", "字"], [], "give --table"),
        (["名", "字"], ["--table", "disease"], "no column for disease_name"),
        (["药品名称", "通用名"], [], "both fill med_name"),
        (["药品名称"], ["--part", "x"], "no part 'x'"),
        (["药品名称"], ["--mapping", "no-such-file.json"], "cannot read the mapping"),
    ],
)
def test_unclear_sources_are_wrong_usage(tmp_path, target, capsys, columns, options, message):
    source = write_csv(tmp_path / "a.csv", [["x"] * len(columns)], columns)
    assert main([source, "--to", url(target), *options]) == 2
    assert message in capsys.readouterr().err


def test_empty_columns_without_a_name_are_nothing_to_decide_about(tmp_path, target, capsys):
    """A spreadsheet leaves them behind its last column."""
    wider = [row + [""] * 5 for row in (COLUMNS, *ROWS)]
    source = write_csv(tmp_path / "药品.csv", wider[1:], wider[0])
    assert main([source, "--to", url(target)]) == 0
    assert "lines for the file of --mapping" not in capsys.readouterr().out
    assert len(read(target)) == len(ROWS)


def test_a_mapping_file_and_html(tmp_path, target):
    source = write_csv(tmp_path / "a.csv", [["甲病", "<p>头痛</p>"]], ["名", "征"])
    (tmp_path / "m.yaml").write_text("名: disease_name\n征: clinical_manif\n", encoding="utf-8")
    arguments = ["--table", "disease", "--mapping", str(tmp_path / "m.yaml"), "--strip-html"]
    assert main([source, "--to", url(target), *arguments]) == 0
    assert read(target, "disease", "id, disease_name, clinical_manif") == [(1, "甲病", "头痛")]


CELLS = st.text(st.characters(codec="utf-8"), max_size=10) | st.sampled_from(
    ["<p>", "&amp;", "'; DROP TABLE x; --", "%s"]
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6))
def test_any_cells_arrive_unchanged_or_are_reported(tmp_path, rows, capsys):
    target = tmp_path / "any.db"
    target.unlink(missing_ok=True)
    source = write_csv(tmp_path / "a.csv", rows)
    assert main([source, "--to", url(target), "--skip-rejected", "--encoding", "utf-8"]) == 0
    stored = [row[1:4] for row in read(target)]
    given = [
        tuple(cell.strip().replace("\r\n", "\n").replace("\r", "\n") or None for cell in row)
        for row in rows
    ]
    assert [row for row in stored if row not in given] == []
    assert len(stored) == len(set(stored))
    counted = capsys.readouterr().out.splitlines()[0].removeprefix("a -> drugs_info: ")
    assert sum(int(word) for word in counted.replace(",", "").split() if word.isdigit()) == len(
        rows
    )
