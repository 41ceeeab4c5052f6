"""New questions against existing sets: every method, and what the report says."""

from datetime import date

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql_agent.curation.filter_new_question import main
from sql_agent.curation.near_duplicates import NEAR, NearDuplicates, pairs_of, similarity
from tests.corpora import write_lines
from tests.sql_agent.curation.questions import rows_of


def questions(path, *texts):
    rows = [{"id": f"{path.stem}{n}", "question": text} for n, text in enumerate(texts)]
    return write_lines(path, rows)


def kept_and_dropped(tmp_path, source, *options):
    output = tmp_path / "new.jsonl"
    assert main([str(source), "--output", str(output), *map(str, options)]) == 0
    return rows_of(output), rows_of(tmp_path / "new.dropped.jsonl")


def test_each_method_finds_what_the_stricter_ones_do_not(tmp_path):
    old = tmp_path / "old.parquet"
    known = ["布洛芬缓释胶囊的不良反应有哪些？", "阿莫西林胶囊怎么保存？"]
    parquet.write_table(pa.table({"id": ["a", "b"], "question": known}), old)
    new = questions(
        tmp_path / "in.jsonl",
        "阿莫西林胶囊怎么保存？",
        "阿莫西林胶囊 怎么保存?",
        "请问布洛芬缓释胶囊的不良反应有哪些呢？",
        "头孢克肟分散片怎么保存？",
        "头孢克肟分散片怎么保存",
        "布洛芬缓释胶囊的禁忌有哪些？",
    )
    kept, dropped = kept_and_dropped(tmp_path, new, "--against", old)
    assert kept == [row for row in rows_of(new) if row["id"] in ("in3", "in5")]
    assert [(row["id"], row["method"], row["known"]["id"]) for row in dropped] == [
        ("in0", "same", "b"),
        ("in1", "same", "b"),
        ("in2", "near", "a"),
        ("in4", "same", "in3"),
    ]
    assert dropped[2]["known"] == {"file": str(old), "id": "a", "question": known[0]}
    assert 0.8 <= dropped[2]["score"] < 1
    assert dropped[0]["score"] == 1


@pytest.mark.parametrize("scan", [b"\xff\xd8", {"taken": date(2025, 1, 2)}])
def test_a_value_that_no_line_of_json_can_hold_is_refused_before_anything_is_written(
    tmp_path, capsys, scan
):
    source = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"question": ["怎么保存？"], "scan": [scan]}), source)
    assert main([str(source), "--output", str(tmp_path / "new.jsonl")]) == 2
    assert "column scan" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_an_output_that_is_an_input_is_refused_even_with_force(tmp_path, capsys):
    new = questions(tmp_path / "in.jsonl", "发烧了怎么办？")
    known = questions(tmp_path / "known.jsonl", "头疼怎么办？")
    before = new.read_bytes(), known.read_bytes()
    for output in (new, known):
        flags = ["--against", str(known), "--output", str(output), "--force"]
        assert main([str(new), *flags]) == 2
        assert output.name in capsys.readouterr().err
    assert (new.read_bytes(), known.read_bytes()) == before


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(alphabet="药片怎么吃", max_size=12), min_size=1, max_size=8),
    st.sampled_from([0.5, NEAR, 1.0]),
)
def test_the_nearest_is_that_of_comparing_with_all(texts, near):
    *known, asked = texts
    found = NearDuplicates(near)
    for number, text in enumerate(known):
        found.add(str(number), text)
    scores = [similarity(pairs_of(asked), pairs_of(text)) for text in known]
    best = max(scores, default=0.0)
    assert found.nearest(asked) == ((str(scores.index(best)), best) if best >= near else None)
