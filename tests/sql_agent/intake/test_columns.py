"""Foreign column names find their column; what is unclear is asked about, not guessed."""

import pytest

from data.records import Record, SourceError
from sql_agent.intake.columns import guess_table, map_columns, plan_parts, read_mapping
from sql_agent.intake.grid import Part
from sql_agent.intake.headers import claims
from sql_agent.tables import WORDS
from tests.corpora import cases_of
from tests.messages import missing


def test_a_mapping_decides_and_can_leave_out():
    assert guess_table(["名", "征"], "", {"征": "clinical_manif"}) == "disease"
    columns = ["名", "药品名称", "适应症"]
    chosen = map_columns(columns, "drugs_info", {"名": "med_name", "药品名称": None})
    assert chosen == {"名": "med_name", "适应症": "indication"}


@pytest.mark.parametrize(("columns", "given", "messages"), cases_of(__file__, "unclear_columns"))
def test_what_is_unclear_is_asked(columns, given, messages):
    part = Part("sheet", columns, lambda: iter([Record(1, dict.fromkeys(columns, "甲"))]))
    with pytest.raises(SourceError) as refusal:
        plan_parts([part], given)
    assert not missing(str(refusal.value), *messages)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", '\ufeff{"名": "med_name", "价": null}'), ("a.yaml", "名: med_name\n价: null\n")],
)
def test_mapping_files(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_mapping(tmp_path / name) == {"名": "med_name", "价": None}


@pytest.mark.parametrize(("name", "text", "place"), cases_of(__file__, "damaged_mappings"))
def test_a_damaged_mapping_file_is_named_with_its_line(tmp_path, name, text, place):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        read_mapping(tmp_path / name)
    assert not missing(str(caught.value), name, place)
    with pytest.raises(SourceError, match=r"none\.json"):
        read_mapping(tmp_path / "none.json")


def test_foreign_headers_find_their_columns_and_the_rest_stays_out():
    """Headers of foreign tables; null: none of our columns, "?": more than one is right."""
    found = expected = 0
    for case in cases_of(__file__, "foreign_headers"):
        columns = case["columns"]
        assert guess_table(columns) == case["table"]
        mapping = map_columns([*columns], case["table"], {})
        wrong = {name for name in mapping if columns[name] not in (mapping[name], "?")}
        assert wrong <= {"序号", "序\n号"}  # kept as the key
        clear = {name: column for name, column in columns.items() if column not in (None, "?")}
        expected += len(clear)
        found += sum(mapping.get(name) == column for name, column in clear.items())
    assert expected == 153
    assert found / expected >= 0.98  # measured 1.00


@pytest.mark.parametrize(
    "name",
    ["treatment.cost", "department.id", "JBBM", "治疗费用", "相关疾病", "What happens if I stop?"],
)
def test_what_is_about_something_else_is_no_column_of_ours(name):
    assert not any(claims(name, table) for table in WORDS)
