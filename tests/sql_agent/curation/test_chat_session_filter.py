"""Chat exports in every form, what is dropped and why, and hostile exports."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sql_agent.curation.chat_session_filter import judge, main
from tests.corpora import cases_of
from tests.sql_agent.curation.survivors import survivors
from tests.sql_agent.intake.books import save_book

MOBILES = st.from_regex(r"1[3-9][0-9]{9}", fullmatch=True)
EXPORTS = Path(__file__).with_name("exports")  # the same messages in every form
[SESSION] = json.loads((EXPORTS / "list.json").read_text(encoding="utf-8"))
MESSAGES = SESSION["messages"]
KEPT = [
    ("我叫[姓名]，布洛芬一天吃几次？", ["name"]),
    ("高血压患者能喝酒吗？我电话[电话]", ["phone"]),
]


def filtered(tmp_path, name, content, *options, code=0):
    """The output rows and the report for an export with this content."""
    source, output, report = tmp_path / name, tmp_path / "out.jsonl", tmp_path / "report.json"
    source.write_bytes(content)
    assert (
        main([str(source), "--output", str(output), "--report", str(report), "--force", *options])
        == code
    )
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    return rows, json.loads(report.read_text())


def dump(value):
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("name", sorted(path.name for path in EXPORTS.iterdir()))
def test_every_form_of_export_gives_the_same_rows(tmp_path, name):
    rows, report = filtered(tmp_path, name, (EXPORTS / name).read_bytes())
    assert [(row["question"], row["masked"]) for row in rows] == KEPT
    assert {row["session"] for row in rows} == {"s1"}
    assert len({row["id"] for row in rows}) == 2
    left_out = {"unreadable": 1} if name == "lists.json" else {}
    assert report["messages"] == 5 + len(left_out)
    assert report["dropped"] == {"not_user": 1, "follow_up": 1, "thanks": 1} | left_out
    assert report["masked"] == {"name": 1, "phone": 1}


def test_what_is_dropped_is_written_masked_with_its_reason(tmp_path):
    said = [*MESSAGES, {"role": "user", "content": "我电话13800138000"}, {"role": "user"}]
    said.append({"role": "user", "content": "药" * 1_150 + "13800138000" + "药" * 1_000})
    filtered(tmp_path, "a.json", dump([{"id": "s1", "messages": said}]).encode())
    text = (tmp_path / "out.dropped.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    assert rows[:4] == cases_of(__file__, "dropped_turns")
    assert [row["reason"] for row in rows[4:]] == ["unreadable", "too_long"]
    assert "message 7" in rows[4]["where"]
    assert survivors(text) == []


@pytest.mark.parametrize("length", [1_000, 1_001, 1_200, 1_201])
def test_a_dropped_text_is_written_up_to_its_limit(tmp_path, length):
    said = [{"role": "user", "content": "药" * length}]
    filtered(tmp_path, "a.json", dump([{"id": "s1", "messages": said}]).encode())
    [row] = map(json.loads, (tmp_path / "out.dropped.jsonl").read_text().splitlines())
    assert row["question"] == "药" * 1_000 + "…" * (length > 1_000)


def test_session_numbers_of_a_workbook_have_no_fraction(tmp_path):
    rows = [["会话ID", "角色", "内容"], [0, "用户", "布洛芬一天吃几次？"]]
    save_book(tmp_path / "chats.xlsx", rows)
    rows, _ = filtered(tmp_path, "chats.xlsx", (tmp_path / "chats.xlsx").read_bytes())
    assert [row["session"] for row in rows] == ["0"]


@pytest.mark.parametrize(("text", "reason"), cases_of(__file__, "judged_messages"))
def test_a_message_is_judged(text, reason):
    assert judge(text)[1] == reason


def test_the_same_question_comes_once_with_the_same_id(tmp_path):
    twice = [
        {"role": "user", "content": text}
        for text in ("布洛芬怎么吃？", "布洛芬 怎么吃", "布洛芬怎麼吃？")
    ]
    rows, report = filtered(tmp_path, "a.json", dump(twice).encode())
    assert [row["question"] for row in rows] == ["布洛芬怎么吃？", "布洛芬怎麼吃？"]
    assert report["dropped"] == {"duplicate": 1}
    again, _ = filtered(tmp_path, "b.json", dump(twice[1:2]).encode())
    assert again[0]["id"] == rows[0]["id"]


def test_a_session_named_by_a_phone_number_is_masked(tmp_path):
    asked = {"session_id": "13800138000", "messages": MESSAGES[:1]}
    [row], _ = filtered(tmp_path, "a.json", dump([asked]).encode())
    assert row["session"] == "[电话]"


def test_unreadable_records_are_counted_and_written(tmp_path):
    lines = ["call 13800138000", "3", dump({"1380013800": ""}), dump({"messages": ["x"]})]
    filtered(tmp_path, "a.jsonl", "\n".join(lines).encode(), code=1)
    lines.append(dump(MESSAGES[0]))
    rows, report = filtered(tmp_path, "a.jsonl", "\n".join(lines).encode())
    assert len(rows) == 1
    assert report["dropped"] == {"unreadable": 4}
    text = (tmp_path / "out.dropped.jsonl").read_text()
    assert "13800138000" not in text
    assert [json.loads(line)["where"] for line in text.splitlines()] == [
        "line 1",
        "line 2",
        "line 3",
        "line 4, message 1",
    ]


def test_a_list_of_questions_without_roles_can_be_taken(tmp_path, capsys):
    content = "问题,回答\n布洛芬的用法是什么？,口服\n".encode()
    filtered(tmp_path, "a.csv", content, code=1)
    assert "--user-role ''" in capsys.readouterr().err
    rows, _ = filtered(tmp_path, "a.csv", content, "--user-role", "")
    assert [row["question"] for row in rows] == ["布洛芬的用法是什么？"]


def test_personal_data_in_a_role_is_in_no_report_and_not_on_the_terminal(tmp_path, capsys):
    """Some exports name the speaker in place of a role."""
    content = dump([{"role": "患者王建国13800138000", "content": "布洛芬怎么吃？"}]).encode()
    _, report = filtered(tmp_path, "a.json", content, code=1)
    assert report["unknown_roles"] == {"患者[姓名][电话]": 1}
    said = capsys.readouterr().err
    assert "患者[姓名][电话]" in said
    assert "13800138000" not in said
    rows, _ = filtered(tmp_path, "a.json", content, "--user-role", "患者王建国13800138000")
    assert len(rows) == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | MOBILES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "role", "content", "messages", "time", "session_id", "x"]), inner
        )
    ),
    max_leaves=12,
)
ASKED = st.builds(
    lambda session, text, number, time: {
        "session_id": session,
        "messages": [{"role": "user", "content": f"{text}布洛芬怎么吃？{number}", "time": time}],
    },
    VALUES,
    st.text(max_size=10),
    MOBILES,
    VALUES | MOBILES,
)


@pytest.mark.system
@given(st.lists(VALUES | ASKED, max_size=4), st.sampled_from(["a.json", "a.jsonl"]))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_hostile_exports_end_in_rows_without_numbers_or_in_one_message(tmp_path, records, name):
    source, output = tmp_path / name, tmp_path / "out.jsonl"
    text = json.dumps(records) if name == "a.json" else "\n".join(map(json.dumps, records))
    source.write_text(text)
    output.unlink(missing_ok=True)
    assert main([str(source), "--output", str(output)]) in (0, 1, 2)
    for line in output.read_text().splitlines() if output.exists() else ():
        row = json.loads(line)
        assert survivors(row["question"]) == survivors(row["session"]) == []
