"""Which column of a foreign table becomes which column of ours: by name, by synonym, or by a mapping file.

from data.intake.columns import MappingError, guess_table, map_columns, read_mapping
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from data.database.schema import NAME_COLUMN, TABLES

# Further words for a column, beside its own name and its Chinese comment.
SYNONYMS: dict[str, dict[str, tuple[str, ...]]] = {
    "drugs_info": {
        "med_name": (
            "药名",
            "药品名",
            "通用名",
            "通用名称",
            "商品名称",
            "drug_name",
            "medicine",
            "generic_name",
            "drug",
        ),
        "med_name_initial": ("首字母", "拼音首字母", "拼音码", "initials"),
        "med_barcode": ("条码", "商品条码", "barcode", "ean"),
        "med_approval": ("国药准字", "批文", "approval", "approval_number"),
        "component": ("成分", "主要成份", "主要成分", "组成", "ingredients", "ingredient", "composition"),
        "form": ("剂型规格", "dosage_form", "dose_form"),
        "dosage": ("用法", "用量", "用法与用量", "服用方法", "usage", "dosage_and_administration", "administration"),
        "indication": ("适应证", "功能主治", "主治", "主治功能", "用途", "indications", "uses"),
        "adverse_reactions": ("副作用", "不良反应与副作用", "side_effects", "side_effect", "adverse_reaction"),
        "contraindications": ("禁忌症", "禁忌证", "禁用", "contraindication"),
        "precautions": ("注意", "警告", "注意事项与警告", "precaution", "warnings", "warning"),
        "company_name": ("生产厂家", "厂家", "生产单位", "制造商", "企业名称", "manufacturer", "company", "producer"),
        "description": ("外观", "appearance"),
        "mechanism_action": ("药理作用", "药理毒理", "作用机理", "mechanism", "mechanism_of_action", "pharmacology"),
        "cate_name": ("分类", "类别", "药品分类", "category", "class", "drug_class"),
        "drug_interactions": ("相互作用", "药物间相互作用", "interactions", "interaction"),
        "storage": ("储藏", "贮存", "储存", "保存", "贮藏方法", "保存方法", "storage_conditions"),
        "pack": ("包装规格", "规格", "package", "packaging"),
        "period": ("保质期", "有效期限", "shelf_life", "expiry"),
        "approve_code": ("批准编号", "approval_code"),
        "status": ("销售状态", "state"),
        "created_at": ("创建日期", "create_at", "create_time", "created"),
    },
    "disease": {
        "disease_name": ("疾病", "病名", "疾病名", "disease", "condition", "diagnosis_name"),
        "overview": ("简介", "疾病概述", "介绍", "summary", "introduction"),
        "clinical_manif": ("症状", "临床症状", "表现", "symptoms", "symptom", "clinical_manifestations"),
        "complication": ("并发", "complications"),
        "epidemiology": ("流行病", "流行情况", "发病率"),
        "examination": ("检查项目", "辅助检查", "examinations", "tests"),
        "treatment": ("治疗方法", "治疗方案", "therapy", "treatments"),
        "cause": ("发病原因", "原因", "病因与发病机制", "causes", "etiology", "aetiology"),
        "diagnosis": ("诊断标准", "诊断依据"),
        "differ_diag": ("鉴别", "differential_diagnosis", "differential"),
        "prevention": ("预防方法", "预防措施"),
        "prognosis": ("转归", "outlook"),
        "create_at": ("创建日期", "created_at", "create_time", "created"),
        "update_at": ("更新日期", "updated_at", "update_time", "updated"),
    },
}
NAMES_OF_TABLES = {
    "drugs_info": ("drugs_info", "drugs", "drug", "medicines", "药品", "药物", "药品信息"),
    "disease": ("disease", "diseases", "disease_info", "疾病", "疾病信息"),
}


class MappingError(ValueError):
    """Columns that can not be brought to one of the tables; the message says which and what to do."""


def normalise(name: str) -> str:
    """A column name without what writers vary: width, case, spaces, underscores, brackets and punctuation."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name).lower())


def _known(table: str) -> dict[str, str]:
    words = {}
    for column, label in TABLES[table].items():
        for word in (column, label, *SYNONYMS[table].get(column, ())):
            words[normalise(word)] = column
    return words


KNOWN = {table: _known(table) for table in TABLES}


def guess_table(columns: Iterable[str], name: str = "") -> str | None:
    """The table that foreign columns stand for, or, where they do not tell, the foreign table's own name; else None.

    Columns tell when one of them is the entity's name and they fit no other table as well.
    """
    words = {normalise(column) for column in columns}
    fits = {
        table: len(words & known.keys())
        for table, known in KNOWN.items()
        if NAME_COLUMN[table] in {known[word] for word in words & known.keys()}
    }
    best = sorted(fits, key=lambda table: -fits[table])
    if best and (len(best) == 1 or fits[best[0]] > fits[best[1]]):
        return best[0]
    named = [table for table, others in NAMES_OF_TABLES.items() if normalise(name) in map(normalise, others)]
    return named[0] if named else None


def map_columns(columns: Iterable[str], table: str, given: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The foreign columns that are used, each with the column of `table` it fills.

    `given` decides for the columns it names (None: leave out); the rest go by name and synonym.

    Raises:
        MappingError: `given` names a column that does not exist, two columns fill the same one, or none is the name.
    """
    columns = list(columns)
    given = given or {}
    for source, column in given.items():
        if source not in columns:
            raise MappingError(f"the mapping names the column {source!r}; the source has: {', '.join(columns)}")
        if column is not None and column not in TABLES[table]:
            raise MappingError(f"the mapping names {column!r}; {table} has: {', '.join(TABLES[table])}")
    chosen: dict[str, str] = {}
    for source in columns:
        column = given[source] if source in given else KNOWN[table].get(normalise(source))
        if column is None:
            continue
        rival = next((other for other, taken in chosen.items() if taken == column), None)
        if rival is not None:
            raise MappingError(f"the columns {rival!r} and {source!r} both fill {column}; choose one with --mapping")
        chosen[source] = column
    if NAME_COLUMN[table] not in chosen.values():
        raise MappingError(
            f"no column for {NAME_COLUMN[table]} of {table} among: {', '.join(columns)}; name it with --mapping"
        )
    return chosen


def read_mapping(path: Path) -> dict[str, str | None]:
    """A JSON or YAML file of `source column: our column` (null: leave out).

    Raises:
        MappingError: no such file, neither JSON nor YAML, or not such a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise MappingError(f"cannot read the mapping {path}: {error}") from None
    content = _parse(text, path)
    if not isinstance(content, dict) or not all(
        isinstance(key, str) and (value is None or isinstance(value, str)) for key, value in content.items()
    ):
        raise MappingError(f"{path}: expected lines of `source column: our column`, all text")
    return content


def _parse(text: str, path: Path) -> object:
    import yaml

    try:
        return json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise MappingError(f"{path} is not readable: {str(error).splitlines()[0]}") from None
