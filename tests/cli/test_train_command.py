"""Every mistake on the command line is one message and code 2, before anything is started."""

import asyncio
import json
import socket
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from common.settings import ROOT, load_settings, reveal
from episodes import registry
from episodes.agent import Environment, bundled_model
from sql_agent.agent import AGENT
from tests.corpora import cases_of, write_metrics
from tests.digits_agent.agent import AGENT as DIGITS
from tests.messages import missing
from tests.programs import python
from tests.scoring.judge_servers import Server
from tests.serving import serving
from tests.training.conftest import composed_once, served  # noqa: F401 (a fixture)
from tests.training.plans import plan_of
from training.report.summary import ENVIRONMENT
from training.setup.device import SYSTEM_LIBRARIES
from training.start.arguments import parse
from training.start.command import main, main_of_any, main_of_several, start
from training.start.make_plan import make_plan, with_token

DIAGNOSIS_MODEL = bundled_model(registry.get("diagnosis"))


@pytest.fixture(autouse=True)
def fresh_settings(monkeypatch):
    """The test's settings, a port that is free while it runs, and no engine behind the checks."""
    monkeypatch.delenv("AGL_MANAGED_STORE", raising=False)
    monkeypatch.setattr(
        "training.start.command.run", lambda *arguments: pytest.fail("the engine was started")
    )
    monkeypatch.setattr("training.setup.device.built_for", lambda: "cpu")  # of either lock
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AGL_SERVER_PORT", str(kept.getsockname()[1]))
        yield


def refused(capsys: Any, *arguments: str, agent: str = "sql", code: int = 2) -> str:
    """Run the command line; it must end with that code and one line of error, which is returned."""
    try:
        ended = main(agent, list(arguments))
    except SystemExit as stop:
        ended = stop.code
    error = capsys.readouterr().err
    assert ended == code, error
    assert "Traceback" not in error
    assert error.startswith("error: ")
    return error


def write(path: Path, **columns: list) -> str:
    parquet.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize(("words", "named"), cases_of(__file__, "wrong_flags"))
def test_a_wrong_flag_or_key_is_named(words, named, capsys):
    assert not missing(refused(capsys, *words), *named)


def test_resume_alone_means_latest_and_leaves_overrides_alone():
    options = parse(AGENT, ["--resume", "data.seed=3"])
    assert (options.resume, options.overrides) == ("latest", ["data.seed=3"])


def test_an_adapter_that_cannot_be_gone_on_from(tmp_path, capsys):
    given = ("--lora", "--lora-rank", "8", "--lora-adapter-path", str(tmp_path))
    assert not missing(refused(capsys, *given), tmp_path, "adapter_model.safetensors")
    (tmp_path / "adapter_model.safetensors").touch()
    (tmp_path / "adapter_config.json").write_text('{"r": 4}')
    assert not missing(refused(capsys, *given), "rank 4", "--lora-rank", "8")


@pytest.mark.parametrize(
    ("variable", "value", "field", "meant"),
    [
        *cases_of(__file__, "variables_of_a_run"),
        ("BASE_MODEL", DIAGNOSIS_MODEL, "engine.model", DIAGNOSIS_MODEL),
    ],
)
def test_a_variable_reaches_the_run(monkeypatch, variable, value, field, meant):
    """Left behind silently, a run would be sampled or judged otherwise than it was told."""
    options = parse(AGENT, ["--ci-fast", "--device", "cpu"])
    before = attrgetter(field)(make_plan(AGENT, options)[0])
    monkeypatch.setenv(variable, value)
    load_settings.cache_clear()
    assert before != meant, "the value is not the default"
    assert attrgetter(field)(make_plan(AGENT, options)[0]) == meant


@pytest.mark.parametrize(("flags", "field", "meant"), cases_of(__file__, "flags_of_a_run"))
def test_a_flag_reaches_the_run(flags, field, meant):
    without, given = (
        make_plan(AGENT, parse(AGENT, ["--ci-fast", "--device", "cpu", *found]))[0]
        for found in ([], flags)
    )
    assert attrgetter(field)(without) != meant == attrgetter(field)(given)


def test_files_that_cannot_be_trained_on(tmp_path, capsys):
    empty = write(tmp_path / "empty.parquet", id=[], question=[])
    assert "no rows" in refused(capsys, "--train-file", empty)
    assert "nowhere.parquet" in refused(capsys, "--val-file", "nowhere.parquet")
    lacking = write(tmp_path / "lacking.parquet", id=["1"], answer=["a"])
    assert "question" in refused(capsys, "--train-file", lacking)
    wrong = write(tmp_path / "wrong.parquet", id=["1", "2"], question=[1, 2])
    message = refused(capsys, "--train-file", wrong)
    assert "row 0" in message
    assert "question" in message
    few = write(tmp_path / "few.parquet", id=["1"], question=["q"], answer=["a"])
    assert "gives 1 rows" in refused(capsys, "--ci-fast", "--train-file", few)


def test_rows_nobody_could_score(tmp_path, capsys):
    rows = write(tmp_path / "bare.parquet", id=["1", "2"], question=["p", "q"])
    sizes = ("data.train_batch_size=2", "actor_rollout_ref.actor.ppo_mini_batch_size=2")
    assert "2 of 2" in refused(capsys, "--device", "cpu", "--train-file", rows, *sizes)


def test_a_judge_that_is_down(monkeypatch, capsys):
    monkeypatch.setenv("REWARD_MODEL_URL", "http://127.0.0.1:9/score")
    monkeypatch.setenv("JUDGE_TIMEOUT", "0.5")
    message = refused(capsys, "--ci-fast", code=1)
    assert not missing(message, "http://127.0.0.1:9/score", "TEACHER_MODEL")


def test_a_judge_that_likes_everything(monkeypatch, capsys):
    """The run stops before a model is loaded, and goes on, loudly, where that is asked for."""
    server = Server()
    server.replies = [(200, '{"score": 1.0}')]
    loaded: list[object] = []
    monkeypatch.setattr(
        "training.start.command.run", lambda *arguments: loaded.append(arguments) or 0
    )
    monkeypatch.setenv("REWARD_MODEL_URL", f"{server.url}/score")
    with serving(server):
        message = refused(capsys, "--ci-fast", "--device", "cpu", code=1)
        assert len(server.requests) <= 30
        assert loaded == []
        monkeypatch.setenv("JUDGE_CHECK", "0")
        load_settings.cache_clear()
        assert main("sql", ["--ci-fast", "--device", "cpu"]) == 0
    assert not missing(message, "5 of 5 tasks", "TEACHER_MODEL", "JUDGE_CHECK=0")
    assert not missing(capsys.readouterr().err, "WARNING", "JUDGE_CHECK=0", "5 of 5 tasks")
    assert len(loaded) == 1


def test_a_disk_and_a_machine_that_lack_something_are_said_before_the_run(
    tmp_path, monkeypatch, capsys
):
    """The run would end at its first checkpoint, or after a minute without the library's name."""
    flags = ("--ci-fast", "--device", "cpu", "--run-dir", str(tmp_path / "run"))
    with monkeypatch.context() as full:
        full.setattr("training.start.check.SPARE_BYTES", 10**18)
        assert "GB free; a checkpoint of" in refused(capsys, *flags)
    monkeypatch.setitem(SYSTEM_LIBRARIES, "libnowhere.so.1", "libnowhere1")
    assert "apt-get install libnowhere1" in refused(capsys, *flags)


def test_episodes_have_the_budget_that_the_command_names(monkeypatch, tmp_path):
    """verl has it, too, and the checks were made with it."""
    monkeypatch.setattr(registry, "_registered", {DIGITS.name: DIGITS})
    begun: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "training.start.command.run", lambda agent, served, turns, *_: begun.append(turns) or 0
    )
    flags = ["--ci-fast", "--device", "cpu", "--model", bundled_model(AGENT), "--max-turns", "2-4"]
    assert main("digits", [*flags, "--run-dir", str(tmp_path / "run")]) == 0
    assert begun == [(2, 4)]


def test_a_drawn_token_is_what_all_parts_of_a_run_send(monkeypatch, tmp_path):
    """Episodes read it from the settings, which were read before it was drawn."""
    monkeypatch.setenv("AGL_TOKEN", "")
    flags = ["--ci", "--device", "cpu", "--run-dir", str(tmp_path / "run")]
    plan, _ = make_plan(AGENT, parse(AGENT, flags))
    assert plan.store.token is None
    drawn = with_token(plan).store.token
    assert drawn is not None
    assert reveal(load_settings().agl_token) == drawn


@pytest.mark.parametrize("role", ["both", "algorithm"])
def test_a_run_trains_on_the_rows_as_they_were_prepared(role, monkeypatch, tmp_path):
    drafted = {"train": [{"id": "a", "answer": "drafted"}], "val": [{"id": "b", "answer": "own"}]}
    monkeypatch.setattr(
        "training.start.command.prepare", lambda agent, rows, *_: rows.update(drafted)
    )
    monkeypatch.setattr("training.start.command.run", lambda *arguments: 0)
    monkeypatch.setattr(Environment, "__len__", lambda _: 0, raising=False)  # a user's may have it
    plan = plan_of(tmp_path, store_role=role)
    rows = {"train": [{"id": "a", "answer": None}], "val": drafted["val"]}
    assert start(AGENT, {}, load_settings(), None, plan, rows, 1) == 0
    assert (tmp_path / ENVIRONMENT).exists() == (role == "both"), (
        "written where episodes are played"
    )
    for name, kept in drafted.items():
        text = (tmp_path / "data" / f"{name}.jsonl").read_text(encoding="utf-8")
        assert [json.loads(line) for line in text.splitlines()] == kept


def make_run(folder: Path, agent: str) -> Path:
    """A run of one step with all that its checkpoint needs to be resumed, empty."""
    checkpoint = folder / "checkpoints/global_step_1"
    (checkpoint / "actor").mkdir(parents=True)
    (checkpoint / "data.pt").touch()
    for kind in ("model", "optim", "extra_state"):
        (checkpoint / f"actor/{kind}_world_size_1_rank_0.pt").touch()
    model = "actor_rollout_ref: {model: {lora_rank: 0}}"
    (folder / "config.yaml").write_text(f"trainer: {{project_name: {agent}_agent}}\n{model}\n")
    return checkpoint


def test_what_cannot_be_resumed_says_what_can(tmp_path, capsys):
    checkpoint = str(make_run(tmp_path, "code"))
    message = refused(capsys, "--ci-fast", "--resume", checkpoint)
    assert not missing(message, "code_agent", "sql_agent")
    make_run(tmp_path / "two", "sql")
    given = ("--run-dir", str(tmp_path / "two"), "--n-gpus", "2")
    assert not missing(refused(capsys, "--ci-fast", "--resume", *given), "1 devices", "has 2")


def test_auto_has_nothing_to_do_where_the_run_is_finished(tmp_path, capsys):
    make_run(tmp_path, "sql")
    write_metrics(tmp_path, {1: {"val-core/all/reward/mean@1": 0.5}})
    (tmp_path / "summary.json").write_text('{"exit_reason": "done"}')
    assert main("sql", ["--ci-fast", "--resume", "auto", "--run-dir", str(tmp_path)]) == 0
    assert not missing(capsys.readouterr().out, "is finished", "step 1 of 1")


@pytest.mark.parametrize(
    ("validates", "reason", "begins"),
    [(True, "done", True), (False, "done", False), (False, "interrupted", True)],
)
def test_a_run_that_was_stopped_behind_its_last_step_is_ended(
    validates, reason, begins, tmp_path, monkeypatch
):
    """Else a scheduler would take a validation that failed, or a run without summary, for ended."""
    make_run(tmp_path, "sql")
    (tmp_path / "summary.json").write_text(json.dumps({"exit_reason": reason}))
    told = []

    def started(agent: Any, flags: Any, settings: Any, config: Any, *others: Any) -> int:
        told.append(config.trainer.val_before_train)
        return 0

    monkeypatch.setattr("training.start.command.start", started)
    frequency = f"trainer.test_freq={1 if validates else -1}"
    flags = ["--ci-fast", "--resume", "auto", "--run-dir", str(tmp_path), frequency]
    assert main("sql", flags) == 0
    assert told == ([validates] if begins else [])


def test_the_last_step_of_too_few_rows_is_verl_s_last_step(tmp_path, monkeypatch):
    """Else verl leaves its loop when the rows are over, and saves and validates nothing."""
    given: list[Any] = []
    monkeypatch.setattr(
        "training.start.command.start",
        lambda agent, flags, settings, *told: given.append(told) or 0,
    )
    flags = ["--ci", "--run-dir", str(tmp_path), "data.train_max_samples=100"]
    assert main("sql", flags) == 0
    config, last = given[0][0], given[0][-1]
    assert config.trainer.total_training_steps == last < 20


@pytest.mark.parametrize("name", ["episodes.jsonl", "notes.txt"])
def test_a_run_folder_in_use(name, tmp_path, capsys):
    (tmp_path / name).write_text("{}")
    assert not missing(refused(capsys, "--run-dir", str(tmp_path)), tmp_path, "--resume")


def test_a_command_in_which_nothing_began_leaves_no_folder(tmp_path, capsys):
    """A folder that was there before stays."""
    sql = "SELECT storage FROM drugs_info WHERE med_name = '宁心九号片'"
    gold = '{"columns": ["storage"], "rows": [["密封"]]}'
    row = {"question": "宁心九号片怎么保存？", "answer": "密封", "sql": sql, "structured_gt": gold}
    columns = {name: [value] * 8 for name, value in row.items()}
    file = write(tmp_path / "rows.parquet", id=[f"q{number}" for number in range(8)], **columns)
    (tmp_path / "old").mkdir()
    for name in ("new", "old"):
        words = ["--train-file", file, "--val-file", file, "--run-dir", str(tmp_path / name)]
        assert not missing(refused(capsys, "--ci-fast", *words), "DATABASE_URL")
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "old").exists()


def test_settings_that_contradict_each_other(monkeypatch, capsys):
    address = ("--external-store-address", "http://127.0.0.1:1")
    assert "set AGL_MANAGED_STORE=0" in refused(capsys, "--ci-fast", *address)
    monkeypatch.setenv("AGL_MANAGED_STORE", "0")
    monkeypatch.setenv("AGL_TOKEN", "of-the-store")
    load_settings.cache_clear()
    assert "needs --external-store-address" in refused(capsys, "--ci-fast")
    assert "at http://127.0.0.1:1" in refused(capsys, "--ci-fast", *address)
    assert "is not a URL" in refused(capsys, "--ci-fast", "--external-store-address", "127.0.0.1:1")


def test_a_port_in_use(monkeypatch, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("AGL_SERVER_PORT", str(taken.getsockname()[1]))
        assert "set AGL_SERVER_PORT" in refused(capsys, "--ci-fast")


@pytest.mark.parametrize("variable", ["AGL_SERVER_HOST", "LLM_PROXY_HOST"])
def test_an_address_that_others_reach_needs_a_token(variable, monkeypatch, capsys):
    monkeypatch.delenv("AGL_TOKEN", raising=False)
    monkeypatch.setenv(variable, "0.0.0.0")
    assert not missing(refused(capsys, "--ci-fast"), f"{variable} 0.0.0.0", "AGL_TOKEN")


async def test_a_store_that_wants_another_token(monkeypatch, capsys):
    async with served(token="right") as store:
        address = ("--external-store-address", store.server_address_root)
        monkeypatch.setenv("AGL_MANAGED_STORE", "0")
        monkeypatch.delenv("AGL_TOKEN", raising=False)
        load_settings.cache_clear()
        # The store answers on this thread, and signals are heard on no other.
        monkeypatch.setattr("training.start.command.stop_in_order", lambda: None)
        assert await asyncio.to_thread(main, "sql", ["--ci-fast", *address]) == 2
        assert "AGL_TOKEN is not set" in capsys.readouterr().err
        monkeypatch.setenv("AGL_TOKEN", "wrong-canary")
        load_settings.cache_clear()
        assert await asyncio.to_thread(main, "sql", ["--ci-fast", *address]) == 2
        message = capsys.readouterr().err
        assert "refuses this AGL_TOKEN" in message
        assert "canary" not in message


def test_a_database_that_is_not_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/gone.db")
    message = refused(capsys, "--ci-fast")
    assert not missing(message, "gone.db", "data.build_database", "DATABASE_URL")


def test_an_agent_nobody_knows_or_names_is_said(capsys):
    assert "'sqll'" in refused(capsys, agent="sqll")
    with pytest.raises(SystemExit, match="2"):
        main_of_any(["--model", "sql"])
    assert "AGENT" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main_of_several(["--ci-fast"])
    assert "--agents" in capsys.readouterr().err


@pytest.mark.system
def test_a_missing_package_is_named(tmp_path):
    """A Python without any of our packages."""
    done = python("-E", "-s", "-S", ROOT / "train_sql_agent.py", "--ci-fast", cwd=tmp_path)
    assert done.returncode == 2
    assert "./install.sh" in done.stderr
    assert "Traceback" not in done.stderr
