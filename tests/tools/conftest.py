"""A copy of the embedded database for every test that needs one, and the tool on it."""

from __future__ import annotations

import shutil

import pytest

from tools.query import QueryTool
from utils.settings import ROOT


@pytest.fixture
def database(tmp_path):
    return shutil.copy(ROOT / "data" / "medical.db", tmp_path / "medical.db")


@pytest.fixture
def tool(database):
    return QueryTool(f"sqlite:///{database}")
