"""Foreign column names find their column; what is unclear is asked about, not guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.database.schema import ASKABLE, NAME_COLUMN, WORDS
from data.intake.columns import guess_table, map_columns, read_mapping
from data.intake.headers import KNOWN, normalise
from data.intake.sources import SourceError


def test_a_word_stands_for_one_column():
    for table, columns in WORDS.items():
        known = [normalise(word) for column, words in columns.items() for word in (column, *words)]
        assert len(set(known)) == len(known), table
        assert KNOWN[table]["id"] == "id"
    assert ASKABLE.keys() == NAME_COLUMN.keys() == WORDS.keys()
    assert all({NAME_COLUMN[table], *ASKABLE[table]} <= columns.keys() for table, columns in WORDS.items())


@pytest.mark.parametrize(
    ("columns", "name", "table"),
    [
        (["药品名称", "适应症"], "", "drugs_info"),
        (["Drug Name", "Indications"], "", "drugs_info"),
        (["疾病名称", "症状"], "", "disease"),
        (["disease", "Symptoms"], "drugs", "disease"),
        (["name", "text"], "diseases", "disease"),
        (["name", "text"], "", None),
        (["drug", "disease"], "", None),
    ],
)
def test_the_table_is_told_from_the_columns_or_the_name(columns, name, table):
    assert guess_table(columns, name) == table


def test_names_are_found_in_any_writing():
    columns = ["【药品名称】", "SIDE EFFECTS", "禁忌症：", "Cate-Name", "杂项"]
    assert map_columns(columns, "drugs_info", {}) == {
        "【药品名称】": "med_name",
        "SIDE EFFECTS": "adverse_reactions",
        "禁忌症：": "contraindications",
        "Cate-Name": "cate_name",
    }


def test_a_mapping_decides_and_can_leave_out():
    columns = ["名", "药品名称", "适应症"]
    chosen = map_columns(columns, "drugs_info", {"名": "med_name", "药品名称": None})
    assert chosen == {"名": "med_name", "适应症": "indication"}


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        (["药品名称", "通用名"], {}, "'药品名称' and '通用名' both fill med_name"),
        (["适应症"], {}, "no column for med_name"),
        (["药品名称"], {"药名": "med_name"}, "names the column '药名'; the source has: 药品名称"),
        (["药品名称"], {"药品名称": "name"}, "names 'name'; drugs_info has: id, med_name"),
    ],
)
def test_what_is_unclear_is_asked(columns, given, message):
    with pytest.raises(SourceError, match=message):
        map_columns(columns, "drugs_info", given)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", '\ufeff{"名": "med_name", "价": null}'), ("a.yaml", "名: med_name\n价: null\n")],
)
def test_mapping_files(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_mapping(tmp_path / name) == {"名": "med_name", "价": None}


@pytest.mark.parametrize(("name", "text"), [("a.json", "{"), ("a.yaml", "a: [b"), ("a.yaml", "- a"), ("a.yml", "a: 1")])
def test_damaged_mapping_files_are_one_line(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=name) as caught:
        read_mapping(tmp_path / name)
    assert "\n" not in str(caught.value)
    with pytest.raises(SourceError, match="cannot read"):
        read_mapping(tmp_path / "none.json")


@given(columns=st.lists(st.text(max_size=8) | st.sampled_from(sorted(KNOWN["disease"])), unique=True, max_size=8))
def test_any_column_names_are_mapped_or_refused(columns):
    try:
        chosen = map_columns(columns, "disease", {})
    except SourceError:
        return
    assert chosen.keys() <= set(columns)
    assert len(set(chosen.values())) == len(chosen)
    assert "disease_name" in chosen.values()
