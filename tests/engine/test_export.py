"""A run's export is loaded by transformers and vLLM, which answer a task alike: the command's own
check.
"""

import pytest

from training import export


@pytest.mark.engine
def test_an_export_is_loaded_and_answers_alike(smoke, tmp_path):
    assert export.main([str(smoke.run_dir), "--to", str(tmp_path / "model")]) == 0
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "same greedy reply" in card, "the command's own check is what the card is written from"
