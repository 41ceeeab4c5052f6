"""Run folders are read as far as they got, whatever stands in them, one line in memory at a time."""

import json

from hypothesis import given
from hypothesis import strategies as st

from evaluation.report import page
from evaluation.run_folder import FILES, Run, open_folders
from evaluation.runs import main
from tests.evaluation.evaluations import evaluation, record
from tests.evaluation.folders import training_run
from tests.messages import missing


def test_a_demo_is_its_three_parts_and_several_folders_have_short_names(tmp_path):
    for name in ("a", "b"):
        evaluation(tmp_path / name / "before", [record()])
        training_run(tmp_path / name / "train")
        evaluation(tmp_path / name / "after", [record()])
    parts = ["before", "train", "after"]
    alone = open_folders([tmp_path / "a"])
    assert [run.label for run in alone] == parts
    assert [run.kind for run in alone] == ["evaluation", "training", "evaluation"]
    both = open_folders([tmp_path / "a", tmp_path / "b"])
    labels = [f"a {part}" for part in parts] + [f"b {part}" for part in parts]
    assert [run.label for run in both] == labels
    assert all(not run.missing for run in both)


def test_a_run_that_died_is_read_as_far_as_it_got(tmp_path):
    run = training_run(tmp_path / "run")
    for name in ("summary.json", "versions.json"):
        (run / name).unlink()
    text = (run / "episodes.jsonl").read_text()
    (run / "episodes.jsonl").write_text(text[:-20])
    [found] = open_folders([run])
    assert (found.agent, found.config["data.seed"], found.summary) == ("sql", 7, {})
    assert [step for step, _ in found.steps] == [0, 1, 2, 3]
    assert sum(1 for _ in found.episodes()) == 7
    names = ("summary.json", "versions.json", "episodes.jsonl: 1 lines")
    for told, name in zip(found.missing, names, strict=True):
        assert name in told


def test_runs_and_evaluations_are_listed_newest_first(tmp_path, capsys):
    evaluation(tmp_path / "demo" / "before", [record(str(n), n % 2) for n in range(10)])
    training_run(tmp_path / "run")
    (tmp_path / "other").mkdir()
    assert main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    lines = [line for line in printed if line.startswith(f"| {tmp_path}")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert sorted(row[0] for row in cells) == [f"{tmp_path}/demo/before", f"{tmp_path}/run"]
    found = {row[0]: [*row[1:5], row[-1]] for row in cells}
    assert found[f"{tmp_path}/run"] == ["–", "done", "training", "sql", "3"]
    assert found[f"{tmp_path}/demo/before"] == ["50.0 of 100", "done", "evaluation", "sql", "10"]
    assert [row[-2] for row in cells] == sorted((row[-2] for row in cells), reverse=True)


def test_values_of_another_kind_are_passed_over(tmp_path):
    run = training_run(tmp_path / "run")
    odd = {"validation": [1], "environment": 3, "dropped_tokens": [1]}
    (run / "summary.json").write_text(json.dumps(odd))
    scored = evaluation(tmp_path / "scored", [record(str(n)) for n in range(12)])
    scores = json.loads((scored / "scores.json").read_text())
    scores["overall"] |= {"ci95": ["a", None], "execution_accuracy_ci95": ["a", None]}
    (scored / "scores.json").write_text(json.dumps(scores))
    assert main([str(tmp_path)]) == 0
    report = page.read([run, scored])
    assert report.html()


def test_a_narrow_terminal_keeps_folders_whole_and_how_they_ended(tmp_path, capsys, monkeypatch):
    folder = training_run(tmp_path / "a-run-with-a-name-of-its-own-and-one-more")
    summary = json.loads((folder / "summary.json").read_text())
    summary |= {"validation": {"reward": {"mean": 0.38}}, "environment": {"highest_reward": 1.1}}
    (folder / "summary.json").write_text(json.dumps(summary))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main([str(tmp_path)]) == 0
    table = capsys.readouterr().out.split("tasks or steps")[0]
    rows = [line.split("│")[1:-1] for line in table.splitlines() if line.startswith("│")]
    assert "".join(row[0].strip() for row in rows) == str(folder)
    assert [cell.strip() for cell in rows[0][1:3]] == ["0.380 of 1.1", "done"]
    (folder / "summary.json").write_text(json.dumps(summary | {"agents": {"sql": {}, "code": {}}}))
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert not missing(shown, "0.380")
    assert "of 1.1" not in shown


@given(st.binary(max_size=400))
def test_no_bytes_make_reading_raise(tmp_path_factory, found):
    folder = tmp_path_factory.mktemp("run")
    for name in (*FILES["training"], "scores.json"):
        (folder / name).write_bytes(found)
    run = Run(folder, "training", "", folder)
    assert isinstance([*run.episodes(), *run.steps], list)
    for part in (run.scores, run.summary, run.object_in("versions.json"), run.config):
        assert isinstance(part, dict)
    assert run.when.endswith("UTC")
