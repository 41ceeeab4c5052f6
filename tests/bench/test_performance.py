"""The page of measurements, docs/quality.md, says what docs/performance.json holds."""

import json

from bench.performance import FIGURES, PAGE, WORDS, page, read_figures


def test_the_page_says_what_was_measured():
    words = WORDS.read_text(encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(words, read_figures())


def test_every_measurement_names_command_commit_and_machine():
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    assert figures
    for name, found in figures.items():
        assert all(found[key] for key in ("bench", "command", "commit", "machine")), name
