"""The evaluation program on small data: gold, template, scripted endpoints, resuming, and what it
refuses.

The model's side is a real HTTP server with scripted replies; tool, data and offline judge are the
real ones.
"""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest

from common.command import UsageError
from common.settings import ROOT, Settings, load_settings
from episodes import registry
from evaluation import evaluate, play, players
from evaluation.players import Player, find_player
from evaluation.results import sample_rows
from sql_agent.agent import AGENT
from sql_agent.intake.question_files import normalise, write_rows
from tests.corpora import cases_of
from tests.episodes.guessing_agent import GuessingAgent, GuessingEnvironment
from tests.episodes.scripted import asks, says
from tests.evaluation.evaluations import run
from tests.messages import missing
from tests.sql_agent.small_database import CAUSE, STORAGE

WRONG = "每日三次，每次两片"
ANSWERS = {"q0": f"朵莎洛片的贮藏方法：{STORAGE}", "q1": f"图帕氏病的病因：{CAUSE}"}


ROWS = cases_of(__file__, "questions")


def test_gold_is_right_in_everything(data):
    code, scores, episodes = run(data, "--gold")
    assert code == 0
    overall = scores["overall"]
    assert (overall["n"], overall["score"]) == (3, 1)
    assert (overall["execution_accuracy"], overall["sql_ok"]) == (1, 1)
    assert overall["ci95"] == [pytest.approx(0.438, abs=0.001), 1]
    assert (overall["abstention_precision"], overall["abstention_recall"]) == (1, 1)
    assert overall["evidence_recall"] == 1
    assert overall["turns"] == 2
    assert set(scores["by_task_type"]) == {"drug_field", "disease_field", "unanswerable"}
    assert scores["by_difficulty"]["easy"]["n"] == 3
    assert [episode["sql"] for episode in episodes] == [row["sql"] for row in ROWS]
    assert episodes[0]["reward"] == pytest.approx(1.1)
    assert (scores["kind"], scores["judge"], scores["seed"]) == ("gold", "reference", 0)
    assert len(scores["data"]["sha256"]) == 64


def foreign_rows(folder: Path) -> tuple[Path, str]:
    """Rows of another database. The bundled one counts something else where it is asked theirs."""
    database = f"sqlite:///{folder}/hospital.db"
    kept = []
    for number in range(12):
        name = f"宁心{number}号片"
        sql = f"SELECT storage FROM drugs_info WHERE med_name = '{name}'"
        gold = {"columns": ["storage"], "rows": [["密封，冷处"]]}
        if number < 3:
            sql = "SELECT COUNT(*) AS n FROM drugs_info"
            gold = {"columns": ["n"], "rows": [[3]]}
        row = {"id": f"f{number}", "question": f"{name}怎么保存？", "answer": "密封，冷处"}
        kept.append({**row, "sql": sql, "structured_gt": gold})
    file = folder / "test.parquet"
    write_rows([normalise(row)[0] for row in kept], file, database)
    return file, database


@pytest.mark.parametrize("main", [evaluate.main, play.main])
def test_rows_of_another_database_are_refused(main, tmp_path, monkeypatch, capsys):
    """In a new terminal DATABASE_URL is gone, and gold was 100 on the bundled database."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    file, database = foreign_rows(tmp_path)
    flags = ["--gold", "--out", str(tmp_path / "out")] if main is evaluate.main else []
    assert main(["sql", "--data", str(file), *flags]) == 2
    assert not missing(capsys.readouterr().err, database, "medical.db", "DATABASE_URL")


@pytest.mark.parametrize("project", ["sql_agent", "code+sql_agent", "diagnosis+sql_agent", "mine"])
def test_a_run_of_another_agent_is_refused(project, tmp_path):
    checkpoint = tmp_path / "run" / "checkpoints" / "global_step_3"
    checkpoint.mkdir(parents=True)
    (tmp_path / "run" / "config.yaml").write_text(f"trainer: {{project_name: {project}}}")
    diagnosis = registry.get("diagnosis")
    for model in (tmp_path / "run", checkpoint):
        of_others = "sql" in project and "diagnosis" not in project
        expected = "sql agent.*diagnosis agent" if of_others else "checkpoint|config.json"
        with pytest.raises(UsageError, match=expected):
            players.model_player(diagnosis, str(model), None, load_settings())


def test_silence_earns_nothing(data):
    code, scores, _ = run(data, "--baseline", "silent")
    assert (code, scores["overall"]["score"], scores["model"]) == (0, 0, "silent")


@pytest.mark.parametrize("edited", [{"by_task_type": None}, {"by_task_type": {"drug": {}}}])
def test_numbers_edited_by_hand_are_refused(data, capsys, edited):
    _, scores, _ = run(data, "--baseline", "silent")
    (data.parent / "out" / "scores.json").write_text(json.dumps(scores | edited))
    assert run(data, "--baseline", "silent")[0] == 2
    assert not missing(capsys.readouterr().err, "scores.json", "--force")


def test_a_model_behind_an_endpoint(data, llm, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "key-canary")
    llm.script(asks("SELECT nothing FROM drugs_info"), asks(ROWS[0]["sql"]), says(ANSWERS["q0"]))
    one = ("--model", "m", "--base-url", llm.base_url, "--concurrency", "1", "--n", "1")
    sampling = ("--temperature", "0.5", "--max-tokens", "77", "--thinking")
    code, scores, (episode,) = run(data, *one, *sampling)
    assert (code, "thinking" in scores) == (0, False)
    assert "--thinking is of models that are served here" in capsys.readouterr().err
    assert [(query["ok"], query["rows"]) for query in episode["queries"]] == [(False, 0), (True, 1)]
    assert scores["overall"]["recovered"] == 1
    assert scores["overall"]["sql_ok"] == 0.5
    assert (episode["turns"], episode["prompt_tokens"], episode["completion_tokens"]) == (3, 3, 3)
    request = llm.requests[0]
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("m", 0.5, 77)
    written = "".join(path.read_text(encoding="utf-8") for path in (data.parent / "out").iterdir())
    assert "key-canary" not in written


def test_litellm_carries_the_same_agent(data, llm, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-canary")
    monkeypatch.setenv("OPENAI_API_BASE", llm.base_url)
    llm.script(asks(ROWS[0]["sql"]), says(ANSWERS["q0"]))
    code, scores, (episode,) = run(data, "--model", "openai/m", "--n", "1", "--concurrency", "1")
    assert (code, scores["kind"], episode["stop_reason"]) == (0, "litellm", "answered")
    assert episode["sql"] == ROWS[0]["sql"]
    llm.status, llm.error = 400, "maximum context length exceeded"
    _, _, (episode,) = run(data, "--model", "openai/m", "--n", "1", "--force")
    assert (episode["stop_reason"], episode["score"]) == ("context_overflow", 0)


def test_what_the_machine_broke_is_unscored_and_tried_again(data, llm, capsys):
    llm.status = 500
    flags = ("--model", "m", "--base-url", llm.base_url)
    code, scores, episodes = run(data, *flags)
    assert code == 1
    assert scores["overall"]["unscored"] == {"endpoint_error": 3}
    assert scores["overall"]["score"] is None
    assert {episode["score"] for episode in episodes} == {None}
    assert not missing(capsys.readouterr().err, "3 episodes have no score", "openai/m", "500")
    assert "NOT COMPLETE" in (data.parent / "out" / "table.md").read_text(encoding="utf-8")
    llm.status = 200
    llm.script(says(WRONG))
    code, scores, _ = run(data, *flags)
    assert (code, scores["overall"]["unscored"], scores["overall"]["score"]) == (0, {}, 0)


def test_a_judge_that_is_not_there_stops_before_anything_is_played(data, llm, monkeypatch, capsys):
    monkeypatch.setenv("REWARD_MODEL_URL", "http://127.0.0.1:9/score")
    monkeypatch.setenv("JUDGE_TIMEOUT", "0.5")
    out = str(data.parent / "out")
    command = ["sql", "--data", str(data), "--out", out]
    assert evaluate.main([*command, "--model", "m", "--base-url", llm.base_url]) == 1
    assert "judge gave no score" in capsys.readouterr().err
    assert llm.requests == []


def test_the_same_command_again_plays_nothing(data, llm):
    llm.script(says(WRONG))
    flags = ("--model", "m", "--base-url", llm.base_url, "--k", "2")
    first = run(data, *flags)
    asked = len(llm.requests)
    assert asked == 6
    assert [episode["id"] for episode in first[2]] == ["q0", "q0", "q1", "q1", "q2", "q2"]
    assert [episode["sample"] for episode in first[2]] == [0, 1] * 3
    assert first[1]["overall"]["pass@k"].keys() == {"1", "2"}
    assert run(data, *flags) == first
    assert len(llm.requests) == asked


@pytest.mark.parametrize("flags", [("--seed", "5"), ("--temperature", "0.3"), ("--k", "2")])
def test_another_evaluation_is_not_overwritten(data, llm, capsys, flags):
    llm.script(says(WRONG))
    model = ("--model", "m", "--base-url", llm.base_url)
    command = ["sql", "--data", str(data), "--out", str(data.parent / "out"), *model]
    run(data, *model)
    assert evaluate.main([*command, *flags]) == 2
    assert not missing(capsys.readouterr().err, flags[0].strip("-"), *flags[1:], "--force")
    assert run(data, *model, *flags, "--force")[0] == 0
    assert evaluate.main(command) == 2


@pytest.mark.system
def test_ctrl_c_keeps_what_is_done(data, llm):
    llm.script(says(WRONG))
    llm.delay = 0.5
    command = [sys.executable, "-m", "evaluation.evaluate", "sql", "--data", str(data)]
    command += ["--out", str(data.parent / "out")]
    command += ["--model", "m", "--base-url", llm.base_url, "--concurrency", "1", "--k", "4"]
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ, stderr=subprocess.PIPE, text=True)
    journal = data.parent / "out" / "episodes.jsonl.journal"
    end = time.monotonic() + 120
    # One after the other: what was asked before the last is in the journal
    while len(llm.requests) <= 3:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "same command" in errors
    assert "Traceback" not in errors
    llm.delay, before = 0.0, len(llm.requests)
    code, scores, _ = run(data, *command[8:])
    assert (code, scores["overall"]["episodes"]) == (0, 12)
    assert len(llm.requests) - before <= 12 - 2
    assert not journal.exists()


@pytest.mark.parametrize(("config", "tokens"), cases_of(__file__, "lengths_of_replies"))
def test_replies_are_as_long_as_in_training(tmp_path, config, tokens):
    """Only a model that has no room for more is cut like the bundled one."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert evaluate.reply_tokens(AGENT, Player("served", str(tmp_path)), False) == tokens


def test_a_file_is_no_folder_of_results(data, capsys):
    assert evaluate.main(["sql", "--data", str(data), "--out", str(data), "--gold"]) == 2
    assert "no folder" in capsys.readouterr().err


def test_what_model_means(tmp_path, monkeypatch):
    settings = Settings(_env_file=None)
    assert find_player(str(tmp_path), None, settings).kind == "served"
    monkeypatch.chdir(tmp_path)
    for name in ("checkpoint", "openai/checkpoint"):
        Path(name).mkdir(parents=True)
        assert find_player(name, None, settings) == Player("served", str(tmp_path / name))
    assert find_player("Qwen/Qwen3-0.6B", None, settings).kind == "served"
    assert find_player("anthropic/some-model", None, settings).kind == "litellm"
    assert find_player("anthropic/some-model", "http://h/v1/", settings).base_url == "http://h/v1"
    with pytest.raises(UsageError, match="--base-url"):
        find_player("some-model", None, settings)
    with pytest.raises(UsageError, match="h:8000/v1"):
        find_player("some-model", "h:8000/v1", settings)
    settings = Settings(_env_file=None, openai_base_url="http://h/v1/\r\n")  # as it was copied
    found = find_player("some-model", None, settings)
    assert found == Player("endpoint", "some-model", "http://h/v1")
    for url in ("http://user:se@secret@h/v1", "http://h/v1?key=secret"):
        assert find_player("m", url, settings).fingerprint()["base_url"] == "http://h/v1"
    here, there = (find_player("m", url, settings) for url in ("http://h/v1", "http://g/v1"))
    assert here.fingerprint() != there.fingerprint(), "another model of the same name"


def test_a_model_served_here_is_sampled_as_in_training(tmp_path, monkeypatch):
    """And not with what its own generation_config.json cuts off."""
    served = SimpleNamespace(base_url="http://127.0.0.1:9/v1", name="policy")
    monkeypatch.setattr(players, "serve", lambda *_, **__: nullcontext(served))
    settings = load_settings()
    words = ["sql", "--model", "m", "--temperature", "0.5", "--max-tokens", "9"]
    _, flags = evaluate.parse_arguments(words, settings)
    player = Player("served", str(tmp_path))
    with players.opened(AGENT, player, tmp_path, flags, settings) as (_, found):
        assert found is not None
        assert found.extra == {"top_k": -1}
        assert (found.temperature, found.top_p, found.max_tokens) == (0.5, 1.0, 9)


def test_a_sample_has_every_task_types_share_and_its_seed():
    rows = [{"id": str(number), "task_type": "abc"[number % 10 // 4]} for number in range(100)]
    chosen = sample_rows(rows, 25, seed=1)
    assert Counter(row["task_type"] for row in chosen) == {"a": 10, "b": 10, "c": 5}
    assert chosen == sample_rows(rows, 25, seed=1) != sample_rows(rows, 25, seed=2)
    assert [int(row["id"]) for row in chosen] == sorted(int(row["id"]) for row in chosen)
    assert len(sample_rows(rows, 7, seed=0)) == 7
    assert sample_rows(rows, 100, seed=0) == sample_rows(rows, None, seed=0) == rows


@pytest.fixture
def guessing(monkeypatch):
    agent = GuessingAgent()
    monkeypatch.setattr(registry, "_registered", {"guessing": agent})
    return agent


def test_any_agent_is_evaluated_with_its_own_flags_and_numbers(tmp_path, llm, guessing):
    words = tmp_path / "words.txt"
    words.write_text("salt sugar gone")
    llm.script(says("salt"))
    flags = ("--model", "m", "--base-url", llm.base_url, "--hint", "colder", "--max-turns", "2")
    code, scores, episodes = run(words, *flags, agent="guessing")
    assert (code, scores["agent"], scores["hint"]) == (1, "guessing", "colder")
    assert [episode["score"] for episode in episodes] == [1.0, 0.0, None]
    assert [episode["stop_reason"] for episode in episodes] == ["answered", "max_turns", "failed"]
    assert [episode["guesses"] for episode in episodes] == [["salt"], ["salt"] * 2, []]
    assert scores["overall"]["unscored"] == {"endpoint_unreachable": 1}
    assert (scores["overall"]["silent"], scores["overall"]["guesses"]) == (0, 1.5)
    assert "| silent [95 %] |" in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert {request.get("max_tokens") for request in llm.requests} == {200}
    assert [environment.closed for environment in guessing.opened] == [True, True]


def test_the_commonest_answer_is_the_files_and_not_the_samples(tmp_path, guessing):
    (tmp_path / "words.txt").write_text("pepper salt")
    flags = ("--baseline", "commonest", "--n", "1")
    _, _, [episode] = run(tmp_path / "words.txt", *flags, agent="guessing")
    assert (episode["id"], episode["answer"]) == ("salt", "pepper")


def test_two_tasks_of_one_id_are_refused(tmp_path, guessing, capsys):
    """One was played, and its score shown as that of both."""
    words = tmp_path / "words.txt"
    words.write_text("salt sugar salt")
    flags = ["guessing", "--baseline", "silent", "--data", str(words)]
    assert evaluate.main([*flags, "--out", str(tmp_path / "out")]) == 2
    assert not missing(capsys.readouterr().err, "2 times", str(words), "'salt'")


@pytest.mark.parametrize(("function", "given"), cases_of(__file__, "faults_of_an_agent"))
def test_a_fault_of_the_agents_own_names_its_function_and_row(
    function, given, tmp_path, guessing, monkeypatch, capsys
):
    owner = GuessingAgent if function == "task" else GuessingEnvironment
    kind = AsyncMock if function == "score" else Mock
    raised = SystemExit(0) if given == 0 else None
    monkeypatch.setattr(owner, function, kind(return_value=given, side_effect=raised))
    (tmp_path / "words.txt").write_text("salt")
    flags = ["guessing", "--baseline", "silent", "--data", str(tmp_path / "words.txt")]
    assert evaluate.main([*flags, "--out", str(tmp_path / "out")]) == 1
    line = capsys.readouterr().err
    assert not missing(line, f"{owner.__name__}.{function} failed at", "salt")
    kept = tmp_path / "out" / "error.txt"
    assert kept.is_file() == (f"traceback is in {kept}" in line) == (function != "task")


@pytest.mark.parametrize("raised", ["SystemExit(0)", "KeyError('word')"])
def test_an_agent_that_leaves_has_failed_with_its_line(tmp_path, guessing, capsys, raised):
    """SystemExit ended an evaluation as if it were done."""
    file = tmp_path / "own_agent" / "agent.py"
    code = compile(f"def rows(_):\n    raise {raised}", str(file), "exec")
    exec(code, vars(guessing))
    (tmp_path / "words.txt").write_text("salt")
    flags = ["guessing", "--baseline=silent", "--data", str(tmp_path / "words.txt")]
    assert evaluate.main(flags) == 1
    [first, *_, line] = capsys.readouterr().err.strip().splitlines()
    assert not missing(first + line, "Traceback", raised[:8], f"{file}, line 2, in rows")


def test_a_reward_above_the_highest_is_said(tmp_path, guessing, monkeypatch, caplog):
    monkeypatch.setattr(GuessingEnvironment, "highest", -1.0)
    (tmp_path / "words.txt").write_text("salt")
    for _ in range(2):  # the second finds the first, though JSON has no tuple
        assert run(tmp_path / "words.txt", "--baseline", "silent", agent="guessing")[0] == 0
    assert not missing(caplog.text, "GuessingEnvironment.score", "highest=-1")
