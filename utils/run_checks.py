"""What a run needs of its settings, looked at by `utils.check_install` once the packages are there."""

from __future__ import annotations

import asyncio
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from common.command import Failure
from common.settings import ROOT, load_settings
from tools.sandbox import SandboxError, probe
from tools.sandbox.settings import SandboxSettings
from tools.sql.query import QueryTool
from tools.sql.settings import DatabaseSettings
from training.setup.device import SYSTEM_LIBRARIES, check_libraries
from training.setup.model_folder import check_model, check_name
from training.setup.ports import require_free
from utils import Doubt

TINY_MODEL = ROOT / "sql_agent" / "tiny_model"
ANSWER_SECONDS = 2.0


def look_at_libraries() -> str:
    """Load what vLLM on a CPU loads."""
    check_libraries("cpu")
    return f"{', '.join(SYSTEM_LIBRARIES)} can be loaded"


def look_at_settings() -> str:
    load_settings()
    return "can be read"


def look_at_ports() -> str:
    """Check that store and proxy can listen on their ports. A proxy's port of 0 is any."""
    settings = load_settings()
    places = {
        "AGL_SERVER_PORT": (settings.agl_server_host, int(settings.agl_server_port)),
        "LLM_PROXY_PORT": (settings.llm_proxy_host, int(settings.llm_proxy_port)),
    }
    for variable, (host, port) in places.items():
        require_free(host, port, variable)
    return ", ".join(f"{host}:{port} is free" for host, port in places.values() if port)


def look_at_database() -> str:
    url = load_settings().of(DatabaseSettings).database_url
    tool = QueryTool(url)
    tool.database()
    if tool.excess:
        raise Doubt(f"its account may do more than read the agent's tables: {tool.excess}")
    return url.rsplit("/", 1)[-1] + " opens, read-only"


def look_at_sandbox() -> str:
    """Check that a program runs. Only the code agent needs it."""
    try:
        asyncio.run(probe())
    except SandboxError as error:
        raise Doubt(str(error)) from None
    return f"programs run in it (SANDBOX={load_settings().of(SandboxSettings).sandbox})"


def look_at_judge() -> str:
    """Return the judge of a run, and whether its URL answers HTTP."""
    settings = load_settings()
    name = "reward model"
    url = settings.reward_model_url
    if settings.teacher_model:
        name = f"teacher LLM {settings.teacher_model}"
        url = settings.teacher_base_url
    elif not url:
        return "offline reference judge: it pays what is quoted; other words need TEACHER_MODEL"
    if not url:
        return f"{name}, at its provider (not asked)"
    said: list[str] = []

    def ask() -> None:
        try:
            request = urllib.request.Request(url, method="HEAD")
            urllib.request.urlopen(request, timeout=ANSWER_SECONDS).close()
        except urllib.error.HTTPError:  # an answer as well
            pass
        except (OSError, ValueError) as error:  # their texts may hold the URL
            said.append(f"no answer ({getattr(error, 'reason', type(error).__name__)})")
            return
        said.append("answers")

    asking = threading.Thread(target=ask, daemon=True)  # name look-up has no time limit
    asking.start()
    asking.join(ANSWER_SECONDS)
    answer = said[0] if said else f"no answer within {ANSWER_SECONDS:.0f} s"
    if answer != "answers":
        raise Failure(f"{name}: {answer}")
    return f"{name}: answers"


def look_at_model() -> str:
    """Check that a model folder has what training needs. A hub id is only named."""
    model = Path(load_settings().base_model or TINY_MODEL).expanduser()
    check_name(str(model))
    if not model.is_dir():
        return f"{model}, from the hub (not asked)"
    check_model(str(model))
    return str(model)


LOOKS: dict[str, Callable[[], str]] = {
    "libraries": look_at_libraries,
    "settings": look_at_settings,
    "ports": look_at_ports,
    "database": look_at_database,
    "sandbox": look_at_sandbox,
    "judge": look_at_judge,
    "model": look_at_model,
}
