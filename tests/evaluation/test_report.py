"""The report: what it says of every agent's episodes and leaves out, in one file."""

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from episodes import registry
from evaluation import evaluate
from evaluation.metrics import interval_of_types
from evaluation.report.__main__ import main
from evaluation.report.charts import charts_of
from evaluation.report.facts import tables_of, unscored
from evaluation.report.page import dumped, episode_of, plain, read
from tests.corpora import cases_of, write_lines
from tests.digits_agent.agent import AGENT as DIGITS
from tests.evaluation.evaluations import evaluation, record
from tests.evaluation.folders import TOKENS, hostile_records, rollout, training_run
from tests.messages import missing
from tests.training.rollouts import rolled_out
from training.report.progress import step_line
from training.report.summary import build_summary, curve

registry.register(DIGITS)
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(page: Path) -> dict[str, Any]:
    found = DATA.search(page.read_text(encoding="utf-8"))
    assert found
    return dict(json.loads(found[1]))


def made(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.mark.system
@pytest.mark.parametrize("name", registry.names())
def test_every_agents_episodes_are_shown_in_full(name, tmp_path, has_packages_of):
    has_packages_of(name)
    folder = tmp_path / name
    assert evaluate.main([name, "--gold", "--n", "3", "--out", str(folder)]) == 0
    assert made(folder) == 0
    data = data_of(folder / "report.html")
    assert [one["problem"] for one in data["episodes"]] == ["", "", ""]
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    for one, line in zip(data["episodes"], lines, strict=True):
        transcript = json.loads(line)["transcript"]
        said = sum(bool(m.get("content")) + len(m.get("tool_calls") or ()) for m in transcript)
        assert len(one["shown"]) == said
        assert {piece["who"] for piece in one["shown"]} >= {"prompt", "policy"}
        assert one["question"]
        assert one["reference"]
    assert data["shared"]["runs"][0]["tables"]
    assert data["shared"]["missing"] == []


def test_a_record_its_agent_does_not_know_is_shown_plainly_and_says_why():
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": None}]
    one = episode_of(0, {"id": "x", "transcript": said}, registry.get("consultation"))
    assert one["problem"] == "KeyError: 'dialogue'"
    assert [piece["text"] for piece in one["shown"]] == ["q"]
    assert episode_of(0, {"id": "x", "transcript": [{}]}, None)["problem"] == "KeyError: 'role'"


def test_a_validation_has_one_reward_wherever_it_is_shown(tmp_path):
    """It is the mean over task types, which have different numbers of tasks."""
    by_type = {"a": [1.0, 0.0, 1.0, 1.0] * 2, "b": [0.0, 0.5]}
    run = training_run(tmp_path / "run")
    played = []
    for kind, rewards in by_type.items():
        for n, reward in enumerate(rewards):
            task = {"rollout_id": f"{kind}{n}", "group": kind, "task_type": kind, "index": n}
            one = rolled_out(**task, mode="val", step=2, reward=reward)
            played += [one] * 4  # the interval is over tasks, not over rollouts
    (run / "episodes.jsonl").write_text("".join(record.to_json() + "\n" for record in played))
    data = {f"val-core/{kind}/reward/mean@1": fmean(found) for kind, found in by_type.items()}
    write_lines(run / "metrics.jsonl", [{"step": 2, "data": data}])
    assert fmean(data.values()) == 0.5 != fmean([*by_type["a"], *by_type["b"]])

    assert "validation reward 0.500" in step_line(data)
    assert [row["validation"] for row in curve(run)] == [0.5]
    about = {"device": "cpu", "model": "m", "store": "managed"}
    summary = build_summary(run, about, "done", "", 0.0)
    assert summary["validation"]["reward"]["mean"] == 0.5
    page = read([run])
    charts = charts_of(page.tallies)
    title = "validation reward, with 95 % interval"
    [chart] = [chart for chart in charts if chart["title"] == title]
    [[step, mean, low, high]] = chart["series"][0]["points"]
    assert (step, mean) == (2, 0.5)
    assert [low, high] == interval_of_types([*by_type.values()])


@pytest.mark.parametrize(("cut", "told"), [(52, True), (51, False), (0, False)])
def test_a_step_says_when_many_replies_were_cut(cut, told):
    data = {"episodes/stop_reasons/length": cut, "episodes/rollouts": 256}
    line = step_line(data)
    assert ("MAX_TOKENS" in line and f"{cut} of 256" in line) == told


def test_the_kept_tokens_are_on_the_page_a_character_of_several_as_one(tmp_path):
    [sequence] = episode_of(0, rollout(1, tokens=TOKENS), None)["tokens"]
    assert (sequence["count"], sequence["trained"]) == (6, 4)
    told, trained = sequence["parts"]
    assert (told["trained"], told["texts"]) == (False, ["<|user|>why?"])
    assert (trained["texts"], trained["log_probs"]) == (["be", "药", "\n"], [-0.05, -1.5, -7.0])
    assert "log_probs" not in told


def test_what_has_no_score_stands_there_with_its_cause(tmp_path):
    other = evaluation(tmp_path / "e", [record("a"), record("b", None)])
    page = read([training_run(tmp_path / "run"), other])
    _, of_run, of_evaluation = unscored(page.tallies)
    assert of_run[:4] == ["run", "judge_failed", "1", "40"]
    assert of_evaluation[:4] == ["e", "judge_failed", "1", "–"]


def test_evaluations_are_compared_on_their_common_tasks(tmp_path):
    before = evaluation(tmp_path / "before", [record("a", 0.0), record("b", 1.0)])
    after = [record("a", 1.0), record("b", 1.0), record("c", 0.0)]
    other = evaluation(tmp_path / "after", after, judge="openai/other")
    assert made(before, other, "--out", tmp_path / "o.html") == 0
    [difference] = data_of(tmp_path / "o.html")["shared"]["differences"]
    assert difference["sides"] == ["after", "before"]
    row = difference["tables"][""][1]
    assert row[:6] == ["overall", "2", "50.0", "100.0", "+50.0", "too few"]
    assert "openai/other" in str(difference["facts"]), "scores of two judges are not comparable"


def test_scores_of_another_version_leave_the_episodes_readable(tmp_path):
    folder = evaluation(tmp_path / "e", [record()])
    (folder / "scores.json").write_text('{"agent": "sql", "overall": {}}')
    page = read([folder])
    assert tables_of(page.tallies[0]) == {}
    [told] = page.tallies[0].run.missing
    assert not missing(told, "scores.json", "'by_task_type'")
    other = evaluation(tmp_path / "other", [record()])
    assert made(folder, other, "--out", tmp_path / "o.html") == 0
    assert any("not compared" in line for line in data_of(tmp_path / "o.html")["shared"]["missing"])


def test_a_page_is_made_small_enough_to_be_sent(tmp_path, monkeypatch):
    folder = evaluation(tmp_path / "e", [record(f"task-{number}") for number in range(200)])
    monkeypatch.setattr("evaluation.report.page.PAGE_EPISODES", 20)
    assert made(folder) == 0
    data = data_of(folder / "report.html")
    assert 0 < len(data["episodes"]) < 40
    assert data["shared"]["total"] == 200
    assert dict(data["shared"]["results"][0]["facts"])["tasks"] == 200, "of all episodes"


@pytest.mark.parametrize(("words", "named"), cases_of(__file__, "wrong_reports"))
def test_wrong_usage_is_one_line(words, named, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("e", *(f"e{number}" for number in range(9))):
        evaluation(tmp_path / name, [record()])
    assert made(*words) == 2
    error = capsys.readouterr().err
    assert named in error
    assert len(error.splitlines()) == 1


def test_a_live_page_reloads_itself_until_the_run_has_ended(tmp_path, monkeypatch):
    run = training_run(tmp_path / "run")
    summary = (run / "summary.json").read_text()
    (run / "summary.json").unlink()

    def ended(seconds: float) -> None:
        page = (run / "report.html").read_text()
        assert 'http-equiv="refresh"' in page
        assert '"as_of":"' in page
        (run / "summary.json").write_text(summary)

    monkeypatch.setattr("evaluation.report.__main__.time.sleep", ended)
    assert made(run, "--live") == 0
    assert 'http-equiv="refresh"' not in (run / "report.html").read_text()


def test_the_page_holds_no_address_and_allows_two_hashes(tmp_path):
    folder = evaluation(tmp_path / "e", [record()])
    write_lines(folder / "episodes.jsonl", hostile_records())
    assert made(folder) == 0
    page = (folder / "report.html").read_bytes().decode("utf-8")
    outside = DATA.sub("", page)
    assert set(re.findall(r"https?://\S+?[\"'<)]", outside)) == {'http://www.w3.org/2000/svg"'}
    assert len(re.findall("'sha256-", page)) == 2
    assert "unsafe" not in page.split("</head>")[0].split("<style>")[0]
    assert page.count("</script>") == 2


def test_data_is_json_whatever_a_record_holds():
    value: dict[str, Any] = {"a": float("nan"), "b": "</script>\u2028\ud800&", "e": 10**400}
    value |= {"c": [1] * 1000, "d": "x" * 30_000}
    text = dumped(value)
    assert not re.search("[<>&\u2028]", text)
    found = json.loads(text)
    assert found["a"] is None
    assert found["b"] == value["b"].replace("\ud800", "?")
    assert found["c"][-1] == "… (+600)"
    assert found["d"].endswith("… (+10000)")
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    assert json.dumps(plain(deep, 10)).count("[") < 20
