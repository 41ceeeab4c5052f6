"""The two tables of the medical database and what may be asked about them: the one home of these names.

Every column of both tables is text except `id`. The word beside a column is what Chinese readers call it.

    from data.schema import TABLES, ASKABLE, metadata
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import MetaData

DRUG_COLUMNS = {
    "med_name": "药品名称",
    "med_name_initial": "名称首字母",
    "med_barcode": "条形码",
    "med_approval": "批准文号",
    "component": "成份",
    "form": "剂型",
    "dosage": "用法用量",
    "indication": "适应症",
    "adverse_reactions": "不良反应",
    "contraindications": "禁忌",
    "precautions": "注意事项",
    "company_name": "生产企业",
    "description": "性状",
    "mechanism_action": "作用机制",
    "cate_name": "药品类别",
    "drug_interactions": "药物相互作用",
    "storage": "贮藏",
    "pack": "包装",
    "period": "有效期",
    "approve_code": "批准代码",
    "status": "状态",
    "created_at": "创建时间",
}

DISEASE_COLUMNS = {
    "disease_name": "疾病名称",
    "overview": "概述",
    "clinical_manif": "临床表现",
    "complication": "并发症",
    "epidemiology": "流行病学",
    "examination": "检查",
    "treatment": "治疗",
    "cause": "病因",
    "diagnosis": "诊断",
    "differ_diag": "鉴别诊断",
    "prevention": "预防",
    "prognosis": "预后",
    "create_at": "创建时间",
    "update_at": "更新时间",
}

TABLES = {"drugs_info": DRUG_COLUMNS, "disease": DISEASE_COLUMNS}

NAME_COLUMN = {"drugs_info": "med_name", "disease": "disease_name"}

# The columns questions ask about.
ASKABLE = {
    "drugs_info": (
        "indication",
        "adverse_reactions",
        "contraindications",
        "dosage",
        "storage",
        "precautions",
        "drug_interactions",
    ),
    "disease": ("overview", "clinical_manif", "treatment", "cause", "prevention", "examination"),
}


def metadata() -> MetaData:
    """Both tables as SQLAlchemy metadata: an integer key, text columns, a unique index on the name."""
    from sqlalchemy import Column, Integer, MetaData, Table, Text

    tables = MetaData()
    for table, columns in TABLES.items():
        fields = [
            Column(name, Text, unique=name == NAME_COLUMN[table], comment=label) for name, label in columns.items()
        ]
        Table(table, tables, Column("id", Integer, primary_key=True), *fields)
    return tables
