"""The import command: what it writes, what it refuses, and that it writes all or nothing, even when interrupted."""

from __future__ import annotations

import csv
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.build_database import DEFAULT_PATH
from data.database.schema import TABLES
from data.import_database import main
from data.intake.importing import CHUNK, Planned, stage_part
from data.intake.source_types import Part, Record
from data.intake.staging import StagedRow, Staging, StagingError
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
    assert read(target) == [(1, "甲片", "发热", "恶心", "imported"), (2, "乙片", "咳嗽", None, "imported")]
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
    assert "row 2, column 副作用 (adverse_reactions): rejected: control character U+0000" in output.out
    assert "row 3, column 药品名称 (med_name): rejected: empty" in output.out
    assert "row 4: rejected: 2 cells, the header has 3" in output.out
    assert "row 5: empty" in output.out
    assert "row 6, column 药品名称 (med_name): rejected: 256 characters" in output.out
    assert "row 8: duplicate: same as row 7" in output.out
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


def test_a_dry_run_writes_nothing(source, target, capsys):
    assert main([source, "--to", url(target), "--dry-run"]) == 0
    assert "2 rows ready" in capsys.readouterr().out
    assert list(target.parent.iterdir()) == []


def test_keys_of_the_source_are_kept_and_must_be_keys(tmp_path, target, capsys):
    columns = ["ID", "drug_name"]
    assert main([write_csv(tmp_path / "a.csv", [["7", "甲片"], ["3", "乙片"]], columns), "--to", url(target)]) == 0
    assert [row[:2] for row in read(target)] == [(3, "乙片"), (7, "甲片")]
    rows = [["7", "甲片"], ["7", "丁片"], ["x", "乙片"], ["", "丙片"], ["0", "戊片"], ["99999999999", "己片"]]
    assert main([write_csv(tmp_path / "b.csv", rows, columns), "--to", url(target), "--replace"]) == 1
    out = capsys.readouterr().out
    assert "row 3, column id: rejected: 7 is already the id of an earlier row" in out
    assert "row 4, column ID (id): rejected: 'x', expected a whole number" in out
    assert "row 5, column ID (id): rejected: empty" in out
    assert out.count("rejected:") == 5
    assert len(read(target)) == 2


def test_another_database_fills_both_tables(tmp_path, target, capsys):
    assert main([url(DEFAULT_PATH), "--to", url(target)]) == 0
    for table, columns in TABLES.items():
        assert read(target, table, ", ".join(columns)) == read(DEFAULT_PATH, table, ", ".join(columns))
    assert main([url(DEFAULT_PATH), "--to", url(target), "--table", "disease", "--replace"]) == 0
    assert "left out: drugs_info" in capsys.readouterr().out
    assert main([url(target), "--to", url(target), "--replace"]) == 1
    assert "the same file" in capsys.readouterr().err


def plan(records):
    part = Part("a", ["药"], lambda: iter(records), lambda: (0, None))
    return Planned(part, "drugs_info", {"药": "med_name"})


def interrupted(records, after):
    yield from records[:after]
    raise KeyboardInterrupt


def test_an_interrupted_import_goes_on_after_its_last_chunk(tmp_path):
    records = [Record(number, {"药": f"药{number}"}) for number in range(1, 3 * CHUNK + 11)]
    file = tmp_path / "staging"
    staging = Staging(file, "f")
    assert not staging.resumed
    with pytest.raises(KeyboardInterrupt):
        stage_part(plan(interrupted(records, 2 * CHUNK + 5)), staging)
    staging.close()
    staging = Staging(file, "f")
    assert staging.resumed
    assert staging.position("a") == (2 * CHUNK, False)
    heard = []
    stage_part(plan(records), staging, watch=heard.append)
    assert heard == [3 * CHUNK, 3 * CHUNK + 10]
    assert [row.number for row in staging.rows("a")] == list(range(1, 3 * CHUNK + 11))
    assert staging.position("a") == (3 * CHUNK + 10, True)
    stage_part(plan(records), staging, watch=heard.append)
    assert len(heard) == 2
    staging.close()
    staging = Staging(file, "other")
    assert not staging.resumed
    assert staging.staged("a") == 0
    staging.close(remove=True)
    assert not file.exists()


def test_a_changed_source_is_read_anew(tmp_path, target, capsys):
    source = tmp_path / "a.csv"
    write_csv(source, [["", "x", ""], ["甲片", "", ""]])
    assert main([str(source), "--to", url(target)]) == 1
    write_csv(source, [["乙片", "xyz", ""]])
    assert main([str(source), "--to", url(target)]) == 0
    assert "going on" not in capsys.readouterr().out
    assert [row[1] for row in read(target)] == ["乙片"]


def test_staging_files_in_use_or_of_others_are_left_alone(tmp_path):
    staging = Staging(tmp_path / "a", "f")
    with pytest.raises(StagingError, match="another import"):
        Staging(tmp_path / "a", "f")
    staging.close()
    with sqlite3.connect(tmp_path / "b") as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(StagingError, match="something else"):
        Staging(tmp_path / "b", "f")
    (tmp_path / "c").write_bytes(b"text" * 1000)
    with pytest.raises(StagingError, match="not a database"):
        Staging(tmp_path / "c", "f")


def test_a_failed_write_leaves_the_target_as_it_was(source, target):
    assert main([source, "--to", url(target)]) == 0
    before = target.read_bytes()

    def failing():
        yield from staged
        raise TargetError("stop")

    staging = Staging(target.parent / "s", "f")
    stage_part(plan([Record(1, {"药": "新药"})]), staging)
    staged = list(staging.rows("a"))
    with pytest.raises(TargetError, match="stop"):
        Target(url(target), REPLACE).write({"drugs_info": failing()}, "x")
    assert target.read_bytes() == before
    new = target.with_name("new.db")
    with pytest.raises(TargetError, match="nothing written"):
        Target(url(new)).write({"drugs_info": [StagedRow(1, 1, {"med_name": "a"})] * 2}, "x")
    assert not new.exists()
    staging.close()


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


def test_a_mapping_file_and_html(tmp_path, target):
    source = write_csv(tmp_path / "a.csv", [["甲病", "<p>头痛</p>"]], ["名", "征"])
    (tmp_path / "m.yaml").write_text("名: disease_name\n征: clinical_manif\n", encoding="utf-8")
    arguments = ["--table", "disease", "--mapping", str(tmp_path / "m.yaml"), "--strip-html"]
    assert main([source, "--to", url(target), *arguments]) == 0
    assert read(target, "disease", "id, disease_name, clinical_manif") == [(1, "甲病", "头痛")]


CELLS = st.text(st.characters(codec="utf-8"), max_size=10) | st.sampled_from(
    ["<p>", "&amp;", "'; DROP TABLE x; --", "%s"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6))
def test_any_cells_arrive_unchanged_or_are_reported(tmp_path, rows, capsys):
    target = tmp_path / "any.db"
    target.unlink(missing_ok=True)
    source = write_csv(tmp_path / "a.csv", rows)
    assert main([source, "--to", url(target), "--skip-rejected", "--encoding", "utf-8"]) == 0
    stored = [row[1:4] for row in read(target)]
    given = [tuple(cell.strip().replace("\r\n", "\n").replace("\r", "\n") or None for cell in row) for row in rows]
    assert [row for row in stored if row not in given] == []
    assert len(stored) == len(set(stored))
    counted = capsys.readouterr().out.splitlines()[0].removeprefix("a -> drugs_info: ")
    assert sum(int(word) for word in counted.replace(",", "").split() if word.isdigit()) == len(rows)
