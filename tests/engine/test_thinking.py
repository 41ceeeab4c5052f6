"""A policy that thinks, behind a chat template that drops earlier thoughts: what it costs, and the
remedy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from episodes import registry
from tests.runs import free_port
from training.serve import servable
from training.setup.chat_template import TEMPLATE
from training.setup.device import environment

pytestmark = pytest.mark.engine

# Earlier replies without what they thought, as Qwen3's template writes them where the user speaks
# again.
DROPPING = """
{%- for message in messages %}
    {%- set text = message.content %}
    {%- if message.role == 'assistant' and '</think>' in text %}
        {%- set text = text.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ text ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The bundled weights; what opened and closed tool calls is called <think> and </think>."""
    folder = Path(shutil.copytree(registry.get("sql").model, tmp_path / "model"))
    tokenizer = (folder / "tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(
        tokenizer.replace("tool_call>", "think>"), encoding="utf-8"
    )
    (folder / TEMPLATE).write_text(DROPPING)
    return folder


def trained(run_dir: Path, model: Path, *flags: str) -> tuple[str, dict[str, Any]]:
    command = [
        sys.executable,
        "tests/engine/thinker.py",
        str(run_dir),
        str(model),
        str(free_port()),
        *flags,
    ]
    variables = os.environ | environment("cpu")
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, dict(json.loads((run_dir / "summary.json").read_text()))


@pytest.mark.nightly  # two runs; the choice of a template and what it renders have unit tests (tests/training)
def test_thoughts_are_trained_in_one_sequence_an_episode_with_the_remedy(
    model: Path, tmp_path: Path
) -> None:
    said, without = trained(tmp_path / "without", model)
    assert "--keep-thinking" in said
    assert without["signal"]["sequences_per_episode"] > 1.5
    said, kept = trained(tmp_path / "with", model, "--keep-thinking")
    assert "--keep-thinking" not in said
    assert kept["signal"]["sequences_per_episode"] <= 1.05
    for summary in (without, kept):
        assert summary["rollouts"]["finished"] == 32
        assert summary["counters"]["thoughts"] > 8, "the policy thinks"
        assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    checkpoint = Path(servable(str(tmp_path / "with"), tools=False))
    assert (checkpoint / TEMPLATE).read_bytes() == (tmp_path / "with" / TEMPLATE).read_bytes()
    assert (checkpoint / TEMPLATE).read_text() != DROPPING
