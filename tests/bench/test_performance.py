"""The page of measurements, docs/quality.md, says what docs/performance.json holds."""

import json
from pathlib import Path

import pytest

from bench import performance
from bench.performance import FIGURES, PAGE, WORDS, main, page, read_figures

MEASURED = {"bench": "rollouts", "commit": "0123456789ab", "seconds": 1234.56}


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Return a folder with words and figures of its own, which the command writes into."""
    for name, file in (("WORDS", "words.md"), ("FIGURES", "figures.json"), ("PAGE", "page.md")):
        monkeypatch.setattr(performance, name, tmp_path / file)
    (tmp_path / "words.md").write_text("It took {rollouts[seconds]:,.1f} s.\n")
    (tmp_path / "figures.json").write_text(json.dumps({"step": {"seconds": 1}}))
    return tmp_path


def measurement(folder: Path, **changes: object) -> str:
    """Write what a bench printed, and return the command's argument."""
    (folder / "measured.json").write_text("a warning\n" + json.dumps(MEASURED | changes) + "\n")
    return f"rollouts={folder / 'measured.json'}"


def test_the_page_says_what_was_measured():
    words = WORDS.read_text(encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(words, read_figures())


def test_every_measurement_names_command_commit_and_machine():
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    assert figures
    for name, found in figures.items():
        assert all(found[key] for key in ("bench", "command", "commit", "machine")), name


def test_a_measurement_comes_into_file_and_page(published):
    assert main([measurement(published)]) == 0
    assert (published / "page.md").read_text() == "It took 1,234.6 s.\n"
    kept = json.loads((published / "figures.json").read_text())
    assert kept == {"step": {"seconds": 1}, "rollouts": MEASURED}


@pytest.mark.parametrize("commit", ["0123456789ab-dirty", None])
def test_a_measurement_that_no_commit_repeats_is_refused(published, commit, capsys):
    assert main([measurement(published, commit=commit)]) == 2
    assert "no commit" in capsys.readouterr().err
    assert not (published / "page.md").exists()


def test_a_figure_that_is_not_there_is_named(published, capsys):
    assert main([]) == 2
    assert "figures.json lacks: 'rollouts'" in capsys.readouterr().err
