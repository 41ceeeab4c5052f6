"""The locks, install.sh, the scripts and the Dockerfile, without installing everything again."""

import os
import re
import shutil
import site
import venv
from pathlib import Path

import pip
import pytest
import yaml

from common.settings import ROOT
from episodes import registry
from episodes.agent import folder_of
from evaluation import endpoint
from tests.messages import missing
from tests.programs import Ended, ran
from training.proxy.direct import HEALTH
from training.setup.device import SYSTEM_LIBRARIES
from training.store.store_checks import HEALTH_PATH

pytestmark = pytest.mark.system

AGENTS = [
    name for name in registry.names() if folder_of(registry.get(name)).parent == ROOT
]  # none of the tests' own
LOADED_IF_THERE = {"libittnotify.so"}  # Intel's profiler


@pytest.mark.parametrize("lock", ["cpu.txt", "gpu.txt"])
def test_locks_are_pinned_and_name_no_host(lock):
    lines = (ROOT / "requirements" / lock).read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    pin = r'[A-Za-z0-9._-]+==[A-Za-z0-9._+]+(; platform_machine == "x86_64")?'
    assert all(re.fullmatch(pin, line) for line in pins)
    assert len(pins) == len({re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in pins})


def install(venv: Path, **environment: str) -> Ended:
    told = os.environ | {"VENV": str(venv)} | environment
    return ran(ROOT / "install.sh", cwd=venv.parent, env=told)


def write_program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_other_pythons_are_refused_by_name(tmp_path):
    says = '[ "$1" = --version ] && echo Python 3.10.1\nexit 1'
    old = write_program(tmp_path / "python3.10", says)
    result = install(tmp_path / "venv", PYTHON=str(old))
    assert result.returncode == 2
    assert not missing(result.stderr, "3.10.1", "3.11")
    assert not (tmp_path / "venv").exists()


def test_a_machine_without_lock_is_told_where_it_runs(tmp_path):
    for system, machine in (("Darwin", "arm64"), ("Linux", "riscv64")):
        says = f"[ $1 = -s ] && echo {system} || echo {machine}"
        uname = write_program(tmp_path / machine / "uname", says)
        result = install(tmp_path / "venv", PATH=f"{uname.parent}:{os.environ['PATH']}")
        assert result.returncode == 2
        assert not missing(result.stderr, machine, "WSL2", "--platform linux/amd64")


def make_environment(folder: Path) -> None:
    """One with nothing but pip, and that borrowed: installing pip takes most of a minute."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python3.*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)


def test_an_unreachable_torch_index_is_named_and_nothing_is_stamped(tmp_path):
    nowhere = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9")
    make_environment(tmp_path / "venv")
    result = install(tmp_path / "venv", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path), **nowhere)
    assert result.returncode == 1
    assert "PIP_FIND_LINKS=" in result.stderr
    assert not (tmp_path / "venv" / ".installed-lock").exists()


@pytest.mark.parametrize("agent", AGENTS)
def test_the_long_run_starts_the_agents_own_command(agent, tmp_path):
    """The scripts, copied beside a Python that says what it was given."""
    for name in ("sql", agent):
        folder = tmp_path / f"{name}_agent"
        folder.mkdir(exist_ok=True)
        shutil.copy(folder_of(registry.get(name)) / "train.sh", folder)
    write_program(tmp_path / ".venv" / "bin" / "python", 'printf "%s\\n" "$@"')
    said = ran(folder / "train.sh", "--lora", check=True)
    given = said.stdout.splitlines()
    assert (given[0], given[-1]) == (f"train_{agent}_agent.py", "--lora")
    assert ROOT / given[given.index("--train-file") + 1] == registry.get(agent).splits["train"]
    assert ROOT / given[given.index("--val-file") + 1] == registry.get(agent).splits["val"]


def test_compose_bounds_what_its_containers_may_use_write_and_show():
    whole = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    services = whole["services"]
    for name, service in services.items():
        assert {"mem_limit", "pids_limit"} <= service.keys(), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        if name != "postgres":
            assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
    assert "POSTGRES_PASSWORD" not in services["postgres"]["environment"]
    assert services["postgres"]["secrets"] == [*whole["secrets"]]
    assert HEALTH in services["trainer"]["healthcheck"]["test"]
    assert HEALTH_PATH in services["store"]["healthcheck"]["test"]
    assert endpoint.HEALTH in services["serve"]["healthcheck"]["test"]


def bare_machine(folder: Path, user: int, apt: str | None) -> dict[str, str]:
    """Return a PATH with what install.sh needs, an account, and an apt-get that runs this."""
    programs = folder / "bin"
    write_program(programs / "id", f"echo {user}")
    if apt is not None:
        write_program(programs / "apt-get", f'echo "$@" >>{folder}/asked\n{apt}')
    needed = "bash dirname grep tail tr uname cat sha256sum cut rm chmod"
    for name in needed.split():
        (programs / name).symlink_to(str(shutil.which(name)))
    return {"PATH": str(programs), "DEBIAN_FRONTEND": "", "VENV": str(folder / "venv")}


def copied_installer(folder: Path) -> Path:
    """Return install.sh in a folder without a Python, where it ends after the packages."""
    copy = folder / "copy"
    (copy / "some_agent").mkdir(parents=True)
    (copy / "requirements").mkdir()
    (copy / "requirements" / "cpu.txt").touch()
    shutil.copy(ROOT / "install.sh", copy)
    (copy / "some_agent" / "debian-packages.txt").write_text(
        "# why\nbash bash\nno_such_program its-package\n/no/such/*/file another-package\n"
    )
    return copy / "install.sh"


@pytest.mark.parametrize(("user", "apt"), [(1000, "exit 0"), (0, None)])
def test_who_cannot_install_packages_is_told_the_line_and_the_rest_goes_on(tmp_path, user, apt):
    told = ran(copied_installer(tmp_path), "some_agent", env=bare_machine(tmp_path, user, apt))
    assert not missing(told.stderr, "apt-get install", "its-package another-package")
    assert "Python 3.11" in told.stderr, "it ended before the rest"
    assert not (tmp_path / "asked").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="writes policy-rc.d, as root does")
@pytest.mark.parametrize("fails", [False, True])
def test_root_gets_the_packages_and_no_server_of_them_is_started(tmp_path, fails):
    policy = Path("/usr/sbin/policy-rc.d")
    there_before = policy.exists()
    seen = f"/bin/cp {policy} {tmp_path}/policy; echo unable to locate; exit {int(fails)}"
    environment = bare_machine(tmp_path, 0, f'[ "$1" = update ] || {{ {seen}; }}')
    told = ran(copied_installer(tmp_path), "some_agent", env=environment)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "update -qq"
    assert asked[1].endswith("--no-install-recommends its-package another-package")
    assert "exit 101" in (tmp_path / "policy").read_text()
    assert policy.exists() == there_before
    assert ("unable to locate" in told.stderr) == fails
    assert "Python 3.11" in told.stderr, "it ended before the rest"


def test_a_folder_that_is_none_and_an_unknown_option_are_refused(tmp_path):
    script = copied_installer(tmp_path)
    for argument in ("no_agent", "--again"):
        told = ran(script, argument)
        assert (told.returncode, argument in told.stderr) == (2, True)


def test_every_library_that_vllm_loads_is_brought_by_a_wheel_or_looked_for():
    """A bare Debian has none of them but those of libc6, libgcc-s1 and libstdc++6."""
    (packages,) = site.getsitepackages()
    debian = {f"lib{name}.so" for name in ("c", "m", "dl", "pthread", "rt", "gcc_s", "stdc++")}
    (built,) = Path(packages, "vllm").glob("_C.abi3.so")
    named = re.findall(rb"(?<=\0)(lib[\w+-]+\.so)((?:\.\d+)*)(?=\0)", built.read_bytes())
    needed = {(name + number).decode() for name, number in named if name.decode() not in debian}
    brought = {path.name for path in Path(packages, "torch", "lib").iterdir()}
    assert needed - brought - LOADED_IF_THERE == SYSTEM_LIBRARIES.keys()


def ignored(rules: list[str], path: str) -> bool:
    """Return whether Docker leaves a path out: the last rule for it or its folder decides."""
    places = [path, *map(str, Path(path).parents)][:-1]
    found = False
    for rule in rules:
        pattern = re.escape(rule.lstrip("!")).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(pattern, place) for place in places):
            found = not rule.startswith("!")
    return found


def test_the_image_gets_what_is_committed_and_neither_keys_nor_databases():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    kept = "sql_agent/agent.py common/settings.py env_template data/medical.db tools/sql/sqlite.py"
    kept += " data/ehr/tables/hospital.db requirements/cpu.txt sql_agent/tiny_model/tokenizer.json"
    assert [path for path in kept.split() if ignored(rules, path)] == []
    out = ".env .env.prod prod.env key.ppk id_dsa code_agent/.env server.pem certs/tls.key id_rsa keys/id_ed25519 .netrc"
    out += " credentials.toml code_agent/credentials.json patients.db data/mine.sqlite3 a/b.duckdb"
    out += " runs/mine/summary.json store/store.sqlite .aws/credentials data/medical.db-wal x/dump.sql.gz"
    assert [path for path in out.split() if not ignored(rules, path)] == []
