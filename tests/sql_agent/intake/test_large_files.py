"""200,000 rows of a workbook and of a text file are imported in 60 s of a processor and 500 MB."""

import resource
from pathlib import Path

import openpyxl
import pytest

from tests.programs import python

pytestmark = pytest.mark.nightly

ROWS = 200_000
HEADER = ["药品名称", "批准文号", "主要成份", "适应症", "规格", "用法用量", "不良反应", "贮藏"]


def write(path: Path) -> None:
    rows = ([f"{name}{number}" for name in HEADER] for number in range(ROWS))
    if path.suffix == ".csv":
        lines = [",".join(HEADER), *map(",".join, rows)]
        path.write_text("\n".join(lines), encoding="gb18030")
        return
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(HEADER)
    for row in rows:
        sheet.append(row)
    book.save(path)


@pytest.mark.parametrize("name", ["a.xlsx", "a.csv"])
def test_a_large_file_is_imported_in_bounded_time_and_memory(tmp_path, name):
    write(tmp_path / name)
    target = f"sqlite:///{tmp_path}/my.db"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = python("-m", "data.import_database", tmp_path / name, "--to", target, check=True)
    assert f"{ROWS} rows ready" in done.stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60
    assert after.ru_maxrss < 500 * 1024
