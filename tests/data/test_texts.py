"""Every bundled text reads as if somebody had written it: what is joined fits, and nothing is said
twice.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from data.build_database import DEFAULT_PATH
from data.database.schema import TABLES
from data.load import load_rows

ROOT = DEFAULT_PATH.parent
COUNTED = {
    "片": "片",
    "胶囊": "粒",
    "颗粒": "袋克",
    "丸": "丸",
    "口服液": "支毫升",
    "散": "袋克",
}  # what a form is taken in
MILLIGRAMS = range(5, 501)
# What no text of any column may hold.
WRONG = (
    r"见可见|见未见|[见示]有?[见示]|呈.*呈",  # a verb before a finding that brings its own
    r"([\u4e00-\u9fff]{2,})\1|，，|、、|，、|、，",  # a word said twice running
    r"[{}\[\]<>]|None|nan",  # a brace that nothing was put into
    r"\D0(天|周|小时|个月|毫克)",
    r"一日[234]次，(睡前|晨起|早饭|午饭|晚饭)|一日1次，(早晚|三餐|随餐|每隔)",  # a time that does not fit the count
    r"(手术|引流|穿刺)\d+天",  # what is done once does not take days
    r"℃以下(冷藏室|药盒|暗柜|避热处)",
)
TOGETHER = (
    "嗜睡.*失眠",
    "便秘.*腹泻|腹泻.*便秘",
    "夜间.*夜间",
)  # what contradicts or repeats itself in one text


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    with sqlite3.connect(DEFAULT_PATH) as connection:
        connection.row_factory = sqlite3.Row
        return {
            table: [
                dict(row)
                for row in connection.execute(f"SELECT * FROM {table} WHERE source = 'fictional'")
            ]
            for table in TABLES
        }


def texts(rows: dict[str, list[dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    for table in rows:
        for row in rows[table]:
            yield from (
                (f"{table}.{column} {row['id']}", cell)
                for column, cell in row.items()
                if isinstance(cell, str)
            )


def test_no_text_has_a_wrong_joint(rows: dict[str, list[dict[str, Any]]]) -> None:
    told = [
        *texts(rows),
        *(
            (row["id"], row["answer"])
            for split in ("train", "val", "test")
            for row in load_rows(ROOT / f"{split}.parquet")
        ),
    ]
    assert len(told) > 10_000
    written = ("drugs_info.med_name", "drugs_info.company_name")  # syllables may come twice
    read = [
        (place, text)
        for place, text in told
        if re.search("[\u4e00-\u9fff]", text) and not place.startswith(written)
    ]
    assert not [
        (place, text) for place, text in read if re.search("|".join((*WRONG, *TOGETHER)), text)
    ]


def test_doses_and_strengths_are_those_of_the_form(rows: dict[str, list[dict[str, Any]]]) -> None:
    for row in rows["drugs_info"]:
        form = next(form for form in COUNTED if row["med_name"].endswith(form))
        strength = re.fullmatch(r".{3}素(\d+)毫克", row["component"])
        assert strength, row["component"]
        assert int(strength[1]) in MILLIGRAMS
        if row["dosage"]:
            dose = re.match(r"每次(半|\d+)(片|粒|袋|克|丸|支|毫升)，一日\d次，", row["dosage"])
            assert dose, row["dosage"]
            assert dose[2] in COUNTED[form], row["dosage"]
            assert dose[1] == "半" or int(dose[1]) <= (20 if dose[2] == "毫升" else 10)
            assert ("冲服" in row["dosage"] or "调服" in row["dosage"]) == (form in ("颗粒", "散"))
