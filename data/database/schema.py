"""The two tables of the medical database and what may be asked about them: the one home of these names.

Every column is text except `id`. The Chinese word beside a column is its comment in the database. The first 23 columns
of `drugs_info` and 15 of `disease` are the contract with data that users bring; `source` says where a row comes from.

    from data.database.schema import TABLES, ASKABLE, metadata, write_database
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import MetaData

DRUG_COLUMNS = {
    "id": "编号", "med_name": "药品名称", "med_name_initial": "名称首字母", "med_barcode": "条形码",
    "med_approval": "批准文号", "component": "成份", "form": "剂型", "dosage": "用法用量", "indication": "适应症",
    "adverse_reactions": "不良反应", "contraindications": "禁忌", "precautions": "注意事项", "company_name": "生产企业",
    "description": "性状", "mechanism_action": "作用机制", "cate_name": "药品类别", "drug_interactions": "药物相互作用",
    "storage": "贮藏", "pack": "包装", "period": "有效期", "approve_code": "批准代码", "status": "状态",
    "created_at": "创建时间",
}  # fmt: skip
DISEASE_COLUMNS = {
    "id": "编号", "disease_name": "疾病名称", "overview": "概述", "clinical_manif": "临床表现",
    "complication": "并发症", "epidemiology": "流行病学", "examination": "检查", "treatment": "治疗", "cause": "病因",
    "diagnosis": "诊断", "differ_diag": "鉴别诊断", "prevention": "预防", "prognosis": "预后", "create_at": "创建时间",
    "update_at": "更新时间",
}  # fmt: skip

# "textbook": a real entity, general facts; "fictional": made by rule; anything else: data a user brought.
SOURCE = {"source": "来源"}
TEXTBOOK, FICTIONAL = "textbook", "fictional"

TABLES = {"drugs_info": DRUG_COLUMNS | SOURCE, "disease": DISEASE_COLUMNS | SOURCE}

NAME_COLUMN = {"drugs_info": "med_name", "disease": "disease_name"}
NAME_LENGTH, SOURCE_LENGTH = 255, 32

# The columns questions ask about.
ASKABLE = {
    "drugs_info": (
        "indication", "adverse_reactions", "contraindications", "dosage", "storage", "precautions", "drug_interactions",
    ),
    "disease": ("overview", "clinical_manif", "treatment", "cause", "prevention", "examination"),
}  # fmt: skip

BATCH = 5_000
Cells = dict[str, str | int | None]  # a row of a table


def metadata() -> MetaData:
    """Both tables as SQLAlchemy metadata: an integer key, text columns with comments, an index on the name.

    The index holds nothing but names, so a search for a part of one (`LIKE '%...%'`) reads it instead of the wide
    rows. It is not unique: the same drug is sold by several companies.
    """
    from sqlalchemy import Column, Index, Integer, MetaData, String, Table, Text
    from sqlalchemy.dialects.mysql import LONGTEXT

    tables = MetaData()
    for table, columns in TABLES.items():
        name_column = NAME_COLUMN[table]
        # MySQL indexes no unbounded text, and its TEXT ends at 64 KB.
        kinds: dict[str, Any] = {"id": Integer, name_column: String(NAME_LENGTH), "source": String(SOURCE_LENGTH)}
        text = Text().with_variant(LONGTEXT, "mysql", "mariadb")
        fields = [
            Column(
                name,
                kinds.get(name, text),
                primary_key=name == "id",
                autoincrement=False,
                nullable=name not in ("id", name_column),
                comment=label,
            )
            for name, label in columns.items()
        ]
        Table(table, tables, *fields, Index(f"{table}_{name_column}", name_column), mysql_charset="utf8mb4")
    _keep_comments_in_sqlite()
    return tables


def _keep_comments_in_sqlite() -> None:
    """SQLite has no column comments: write them into the CREATE TABLE text, which it keeps word for word."""
    from sqlalchemy.ext.compiler import compiles
    from sqlalchemy.schema import CreateColumn

    @compiles(CreateColumn, "sqlite")
    def with_comment(element: Any, compiler: Any, **options: Any) -> str:
        text = compiler.visit_create_column(element, **options)
        return f"{text} /* {element.element.comment} */" if text and element.element.comment else text


def write_database(path: Path, tables: Mapping[str, Iterable[Cells]]) -> dict[str, int]:
    """Write the tables into a new SQLite file at `path`; an older file is replaced in one step, or kept on failure.

    Returns the number of rows written by table.
    """
    from sqlalchemy import create_engine

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(handle)
    counts = dict.fromkeys(tables, 0)
    try:
        engine, schema = create_engine(f"sqlite:///{temporary}"), metadata()
        schema.create_all(engine)
        with engine.begin() as connection:
            for name, rows in tables.items():
                source = iter(rows)
                while batch := list(islice(source, BATCH)):
                    connection.execute(schema.tables[name].insert(), batch)
                    counts[name] += len(batch)
        engine.dispose()
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return counts
