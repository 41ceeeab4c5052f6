"""What is prepared once is not prepared again, and whatever it depends on makes it out of date.

Keeps of docs/rewards.md, "Before a run": the result is kept with digests, and nothing is kept where
no digest sees a change.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.command import Failure
from common.settings import Settings
from episodes import registry
from episodes.agent import Environment
from sql_agent.settings import SqlSettings
from tests.digits_agent.agent import AGENT
from tests.messages import missing
from training.start import prepare as preparing
from training.start.arguments import parse
from training.start.make_plan import run_settings
from training.start.prepare import Prepared, prepare

FILES = AGENT.splits
SETTINGS = SqlSettings(_env_file=None)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(preparing, "FOLDER", tmp_path / "prepared")
    return tmp_path / "prepared"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks the judge was asked about, each time."""
    calls: list[int] = []
    real = preparing.check_judge

    async def counted(environment: Environment, tasks: Any) -> Any:
        calls.append(len(tasks))
        return await real(environment, tasks)

    monkeypatch.setattr(preparing, "check_judge", counted)
    return calls


def prepared(
    settings: Settings = SETTINGS,
    change: Callable[[dict[str, Any]], object] = dict,
    paid: bool = False,
    options: dict[str, Any] | None = None,
) -> Prepared:
    rows = {name: AGENT.rows(FILES[name]) for name in ("train", "val")}
    change(rows)
    with closing(AGENT.open(settings, {})) as environment:
        environment.judging = replace(environment.judging, paid=paid)
        return prepare(AGENT, FILES, rows, settings, options or {}, environment)


def test_what_an_agent_says_of_its_rows_and_of_this_partner_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else episodes that no partner can play fail while a GPU works."""
    monkeypatch.setattr(
        type(AGENT.flags), "check", lambda _, tasks, options: [f"{len(tasks)} {options['partner']}"]
    )
    wanted = [f"{name}: {len(AGENT.rows(FILES[name]))} unplayable" for name in ("train", "val")]
    for _ in range(2):  # made, and then kept
        assert prepared(options={"partner": "unplayable"}).notes[-2:] == wanted
        assert not missing(capsys.readouterr().out, *wanted)


def test_what_is_kept_is_read_and_the_judge_is_not_asked_again(asked: list[int]) -> None:
    first = prepared()
    second = prepared()
    assert (first.rows, list(first.notes), first.problem) == (second.rows, second.notes, None)
    prepared(SETTINGS.under({"agl_server_port": 4999, "wandb_base_url": "https://example.org"}))
    assert len(asked) == 1, "where a run is served changes nothing, either"


def test_what_episodes_need_must_answer_though_the_result_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared()

    async def gone(environment: Environment) -> None:
        raise Failure("no database")

    with closing(AGENT.open(SETTINGS, {})) as environment:
        monkeypatch.setattr(type(environment), "check", gone)
    with pytest.raises(Failure, match="no database"):
        prepared()


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"change": lambda rows: rows["train"].pop()}, "rows"),
        ({"settings": SETTINGS.under({"reward_terms": "rule=1"})}, "settings"),
        ({"options": {"level": "hard"}}, "settings"),
    ],
)
def test_a_change_makes_it_out_of_date(
    changed: dict[str, Any], part: str, asked: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    prepared()
    prepared(**changed)
    assert f"({part} changed)" in capsys.readouterr().out
    assert len(asked) == 2


@pytest.mark.parametrize("most_bytes", [3, 2])
def test_a_changed_database_makes_it_out_of_date(
    most_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[int]
) -> None:
    """Of one too large to be read whole the time of its last change counts."""
    monkeypatch.setattr("training.setup.fingerprint.MOST_BYTES", most_bytes)
    database = tmp_path / "mine.db"
    database.write_bytes(b"one")
    settings = SETTINGS.under({"database_url": f"sqlite:///{database}"})
    prepared(settings)
    changed = database.stat().st_mtime_ns + 1
    database.write_bytes(b"two")
    os.utime(database, ns=(changed, changed))
    prepared(settings)
    assert len(asked) == 2


@pytest.mark.parametrize("whose", ["the agent", "scoring"])
def test_changed_code_makes_it_out_of_date(
    whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[int]
) -> None:
    """The agent's own and that of the rooms that it stands on: a judge may have become generous."""
    code = tmp_path / whose / "judge.py"
    code.parent.mkdir()
    code.write_text("GENEROUS = False\n")
    if whose == "the agent":
        monkeypatch.setattr(type(AGENT), "folders", (code.parent,))
    else:
        monkeypatch.setattr("training.setup.fingerprint.ROOT", tmp_path)
    prepared()
    code.write_text("GENEROUS = True\n")
    prepared()
    assert len(asked) == 2


@pytest.mark.parametrize(
    "given",
    [
        {"paid": True},
        {"settings": SETTINGS.under({"database_url": "mysql://reader@db.example.org/drugs"})},
    ],
)
def test_where_no_digest_sees_a_change_nothing_is_kept(
    given: dict[str, Any], folder: Path, asked: list[int]
) -> None:
    """A judge that is a model, or a database elsewhere."""
    prepared(**given)
    prepared(**given)
    assert not folder.exists()
    assert len(asked) == 2


def test_a_broken_result_is_made_anew(
    folder: Path, asked: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    prepared()
    [kept] = folder.iterdir()
    kept.write_text('{"depends_on"')
    prepared()
    assert not missing(capsys.readouterr().out, kept)
    prepared()
    assert len(asked) == 2


def test_a_judge_that_fails_is_refused_each_time_and_kept_with_its_warning_where_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(preparing, "problem_of", lambda probed: "it likes everything")
    with pytest.raises(Failure, match="it likes everything"):
        prepared()
    assert not folder.exists()
    for _ in range(2):
        prepared(SETTINGS.under({"judge_check": False}))
        assert not missing(capsys.readouterr().err, "WARNING", "it likes everything")


@pytest.mark.system
@pytest.mark.parametrize(
    ("name", "flags"),
    [("sql", ["--tables", "disease"]), ("diagnosis", ["--turn-penalty", "0.1@3"])],
)
def test_a_training_with_the_same_flags_takes_what_was_prepared(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, flags: list[str]
) -> None:
    assert preparing.main([name, *flags]) == 0
    agent = registry.get(name)
    options = parse(agent, ["--device", "cpu", *flags])
    settings, own = run_settings(agent, options)
    files = {"train": options.train_file, "val": options.val_file}
    rows = {split: agent.rows(path) for split, path in files.items()}
    with closing(agent.open(settings, own)) as environment:
        prepare(agent, files, rows, settings, own, environment)
    assert "prepared before" in capsys.readouterr().out
