"""The templates of the questions about the invented hospital. The texts are in
`hospital_templates.toml` beside this.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

TEMPLATES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
PREAMBLE = "import pandas as pd"
