"""The corpus of hostile and of hostile-looking statements, on every engine that can be started
here.

Every attack: no exception, the database and the folder unchanged, little time and memory, a bounded
answer without the secret, a path or the URL, and the next legal query works. A commit draws some of
them evenly (PER_COMMIT), the night plays all.
"""

import json
import os
import re
import resource
from pathlib import Path

import psutil
import pytest

from tests.tools.sql import sites
from tests.tools.sql.draws import mostly_nightly
from tools.sql.database import Rows
from tools.sql.pool import POOL
from tools.sql.query import Limits, QueryTool
from tools.sql.result import fit

pytestmark = pytest.mark.system

CORPUS = Path(__file__).parent / "corpus"
ENGINES = ("sqlite", "postgres", "mysql")
PER_COMMIT = {"attacks.txt": (55, 55, 10), "legal.txt": (99, 99, 20)}  # of each engine
LIMITS = Limits(deadline=0.5)
OVERSHOOT = 0.3  # seconds
MEMORY = 200 * 2**20
REPEATED = re.compile(r"\{(\d+)\*([^}]*)\}")


def read_corpus(name):
    """Return (engine, statement as written) for every engine a line names, as parameters."""
    found = {engine: [] for engine in ENGINES}
    for line in (CORPUS / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            tags, _, statement = line[1:].partition("] ")
            for engine in ENGINES if tags == "all" else tags.split():
                found[engine].append((engine, statement))
    most = dict(zip(ENGINES, PER_COMMIT[name], strict=True))
    return [case for engine in ENGINES for case in mostly_nightly(found[engine], most[engine])]


def expand(statement, folder):
    """The statement with its placeholders filled in."""
    text = REPEATED.sub(lambda found: int(found[1]) * found[2], statement)
    return text.replace("{folder}", str(folder)).replace("{lf}", "\n").replace("{nul}", "\0")


@pytest.fixture
def site(request):
    return request.getfixturevalue(f"{request.param}_site")


def worked(tool, sql):
    """Run a statement on SQLite; return its result and the seconds of a processor that it took."""
    tool.run("SELECT 1")  # a worker is there, and will be asked next
    worker = POOL.workers[-1].process
    used, ended = _used(worker), _used_by_ended()
    result = tool.run(sql)
    if worker.poll() is None:
        return result, _used(worker) - used
    return result, _used_by_ended() - ended - used


def _used(process):
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


def _used_by_ended():
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.parametrize(("site", "statement"), read_corpus("attacks.txt"), indirect=["site"])
def test_an_attack_does_no_harm(site, statement):
    tool = QueryTool(site.url, limits=LIMITS, cache=False)
    sql = expand(statement, site.folder)
    state, files = site.state(), sorted(site.folder.iterdir())
    memory, peak = psutil.Process().memory_info().rss, _peak()
    if site.engine == "sqlite":
        result, seconds = worked(tool, sql)
        assert seconds <= LIMITS.deadline + OVERSHOOT
    else:
        result = tool.run(sql)
    assert _peak() == peak or _peak() - memory <= MEMORY
    assert site.state() == state
    assert sorted(site.folder.iterdir()) == files
    _check_answer(result, site, sql)
    assert tool.run("SELECT id FROM disease ORDER BY id LIMIT 1").rows == [[1]]


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _check_answer(result, site, sql):
    text = result.to_json()
    message = json.loads(text)
    assert [*message][:6] == ["status", "columns", "rows", "count", "truncated", "error"]
    assert len(text) <= LIMITS.max_chars
    assert sites.SECRET not in text
    assert site.url not in text
    assert str(site.folder) not in text.replace(str(site.folder), "", sql.count(str(site.folder)))
    assert "127.0.0.1" not in text
    assert "root:x:" not in text
    assert not re.search(r"<\||</|<tool|[\x00-\x08\x0b-\x1f]", text)
    assert message["count"] <= len(message["rows"]) or message["truncated"]
    assert result.tables_read <= {"drugs_info", "disease"}
    assert result.ok or not result.tables_read  # nothing to be rewarded for


@pytest.mark.parametrize(("site", "statement"), read_corpus("legal.txt"), indirect=["site"])
def test_a_legal_statement_gives_the_engines_own_rows(site, statement):
    result = QueryTool(site.url, limits=LIMITS, cache=False).run(statement)
    assert result.error is None
    assert result.rows
    with sites.engine_at(site.url) as raw, raw.connect() as connection:
        options = connection.execution_options(no_parameters=True)
        found = options.exec_driver_sql(statement.rstrip("; ")).fetchmany(len(result.rows))
    rows = [tuple(row) for row in found]
    assert fit(Rows(result.columns, rows, len(rows), True), LIMITS).rows == result.rows
