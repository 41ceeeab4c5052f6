"""What a run needs of its settings, looked at by `utils.check_install` once the packages are there."""

import asyncio
from pathlib import Path

from common.settings import ROOT, load_settings
from tools.sandbox import SandboxError, probe
from tools.sandbox.settings import SandboxSettings
from tools.sql.query import QueryTool
from tools.sql.settings import DatabaseSettings
from training.setup.device import SYSTEM_LIBRARIES, check_libraries
from training.setup.model_folder import check_model, check_name
from utils import Doubt

TINY_MODEL = ROOT / "sql_agent" / "tiny_model"


def look_at_libraries() -> str:
    check_libraries("cpu")
    return f"{', '.join(SYSTEM_LIBRARIES)} can be loaded"


def look_at_settings() -> str:
    load_settings()
    return "can be read"


def look_at_database() -> str:
    url = load_settings().of(DatabaseSettings).database_url
    tool = QueryTool(url)
    tool.database()
    if tool.excess:
        raise Doubt(f"its account may do more than read the agent's tables: {tool.excess}")
    return url.rsplit("/", 1)[-1] + " opens, read-only"


def look_at_sandbox() -> str:
    try:
        asyncio.run(probe())
    except SandboxError as error:
        raise Doubt(str(error)) from None
    return f"programs run in it (SANDBOX={load_settings().of(SandboxSettings).sandbox})"


def look_at_model() -> str:
    model = Path(load_settings().base_model or TINY_MODEL).expanduser()
    check_name(str(model))
    if not model.is_dir():
        return f"{model}, from the hub (not asked)"
    check_model(str(model))
    return str(model)
