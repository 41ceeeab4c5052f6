"""What holds for every test."""

import math
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest
from hypothesis import Phase, settings

from common.settings import load_settings
from episodes import registry
from tests.runs import fast_run, start  # noqa: F401 (fixtures)
from tests.tools.sql import servers

# A shell that starts the tests in the background makes them, and every program they start, deaf to
# Ctrl-C, and nohup to SIGHUP; the tests that send these would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Whether a commit passes depends on the commit alone: hypothesis's own profile `ci` generates the
# same cases every time and looks at no clock. `make fuzz` and `make nightly` draw new ones, from a
# seed that they print.
settings.register_profile("random", settings.get_profile("default"), deadline=None, print_blob=True)
# `make mutants` asks whether a test fails, not for the smallest example.
PHASES = (Phase.explicit, Phase.generate)
settings.register_profile("mutants", settings.get_profile("ci"), max_examples=10, phases=PHASES)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def settings_of_this_test() -> Iterator[None]:
    """Settings are read once a process, and a `main` sets variables (a run's token) for the
    processes that it starts: neither is another test's.
    """
    before = dict(os.environ)
    load_settings.cache_clear()
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def stop_signals() -> None:
    """As a program finds them, whatever another test's `main` made of them: processes that a test
    forks inherit it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])


# What is marked `system`, and left out of `make unit`: what asks for one of these fixtures, and
# what stands in these files or is one of these tests, because it starts programs or goes through a
# collection of cases.
STARTS = {"browser", "bubblewrap", "mariadb", "postgres"}
SYSTEM = (
    "tests/bench/",
    "tests/cli/test_train_command.py::test_a_training_that_is_told",
    "tests/code_agent/test_corpus.py",
    "tests/code_agent/test_mutations.py",
    "tests/code_agent/test_runs.py",
    "tests/common/test_llm.py::test_the_program",
    "tests/common/test_parent.py",
    "tests/common/test_search_path.py::test_a_file_two_folders_above_is_not_imported",
    "tests/common/test_slowness.py",
    "tests/consultation_agent/test_patient.py::test_no_patient_names",
    "tests/data/test_cases.py::test_the_bundled_files",
    "tests/data/test_conditions.py::test_the_program",
    "tests/data/test_dataset.py::test_same_seed_gives_the_same_files",
    "tests/data/test_diagnosis_cases.py::test_the_bundled_files",
    "tests/data/test_generation_servers.py",
    "tests/data/test_import_database.py::test_killed",
    "tests/data/test_import_servers.py",
    "tests/data/test_intake_diagnosis.py::test_memory",
    "tests/data/test_stranger_files.py",
    "tests/data/test_validate.py::test_our_own_files",
    "tests/diagnosis_agent/test_corpus.py",
    "tests/episodes/test_mcp_tools.py",
    "tests/episodes/test_registry.py::test_an_agent_is_light",
    "tests/evaluation/test_demo.py::test_a_commit",
    "tests/evaluation/test_demo.py::test_ctrl_c",
    "tests/evaluation/test_evaluate.py::test_ctrl_c",
    "tests/evaluation/test_play.py::test_ctrl_c",
    "tests/evaluation/test_serve.py::test_the_command",
    "tests/faults/test_faults.py::test_faults_of_the_path",
    "tests/house/test_check_install.py",
    "tests/house/test_installation.py",
    "tests/house/test_mutants.py::test_a_call",
    "tests/house/test_mutants.py::test_a_corruption",
    "tests/house/test_mutants.py::test_a_test_that_cannot_be_run",
    "tests/scoring/test_reference.py::test_answers_of_other_rows",
    "tests/scoring/test_reference.py::test_every_gold_answer",
    "tests/sql_agent/test_canaries.py::test_the_offline_judge_accepts_too_few_to_warn",
    "tests/sql_agent/test_mcp.py",
    "tests/sql_agent/test_sqlagent_test.py",
    "tests/tools/sandbox/test_attacks.py",
    "tests/tools/sql/test_corpus.py",
    "tests/tools/sql/test_fuzz.py",
    "tests/tools/sql/test_mcp.py",
    "tests/tools/sql/test_servers_faults.py",
    "tests/tools/sql/test_statements.py",
    "tests/tools/sql/test_workers.py",
    "tests/training/test_config.py::test_a_disagreement",
    "tests/training/test_export.py::test_shards_are_merged",
    "tests/training/test_handover.py::test_a_killed_runner",
    "tests/training/test_handover.py::test_rollouts_of_a_killed_runner",
    "tests/training/test_kept_store.py::test_a_store_that_is_killed",
    "tests/training/test_keys.py",
    "tests/training/test_plain_weights.py",
    "tests/training/test_progress.py::test_on_a_terminal",
    "tests/training/test_progress.py::test_without",
    "tests/training/test_saving.py::test_a_kill",
    "tests/training/test_strangers.py::test_malformed",
    "tests/training/test_trackers.py",
    "tests/training/test_weights_only.py",
    "tests/utils/test_chat_session_filter.py::test_hostile",
    "tests/utils/test_chat_session_filter.py::test_memory",
    "tests/utils/test_filter_new_question.py::test_a_refusing_endpoint",
    "tests/utils/test_filter_new_question.py::test_embeddings",
    "tests/utils/test_filters_killed.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if STARTS & set(getattr(item, "fixturenames", ())) or item.nodeid.startswith(SYSTEM):
            item.add_marker("system")


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Skips unless bubblewrap itself can run a program here; what it then allows ours is for the
    tests.
    """
    if not shutil.which("bwrap"):
        pytest.skip(
            "bubblewrap is not installed (apt-get install bubblewrap): the sandbox is not tested"
        )
    line = [
        "bwrap",
        "--unshare-all",
        "--unshare-user",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "true",
    ]
    tried = subprocess.run(line, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(
            f"this machine allows no sandbox (docs/safety.md), so it is not tested: {tried.stderr.strip()}"
        )


@pytest.fixture
def has_packages_of(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Skips the rest of a test where the Debian packages of the agent it names are missing: the
    sandbox, so far.
    """

    def require(name: str) -> None:
        if (registry.get(name).folder / "debian-packages.txt").exists():
            request.getfixturevalue("bubblewrap")

    return require


@pytest.fixture(autouse=True)
def no_bar_of_slow_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program says on stderr does not depend on how busy the machine is."""
    monkeypatch.setattr("common.terminal.QUICK_SECONDS", math.inf)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """An administrator's URL of the PostgreSQL that all tests share; `servers.fresh_database` makes
    room on it.
    """
    with servers.postgres_server() as (url, _):
        yield url


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """The same of a MariaDB."""
    with servers.mariadb_server() as (url, _):
        yield url
