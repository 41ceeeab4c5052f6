"""The locks, install.sh, the scripts and the Dockerfile: what can be shown without installing
everything again.
"""

import importlib.metadata
import os
import re
import shutil
import site
import subprocess
import venv
import zipfile
from pathlib import Path

import pip
import pytest
import yaml

from common.settings import ROOT
from episodes import registry
from evaluation import endpoint
from requirements.vllm_metadata import write_metadata
from training.proxy.direct import HEALTH
from training.setup import device
from training.setup.device import SYSTEM_LIBRARIES
from training.setup.plan import ConfigError
from training.setup.presets import choose
from training.store.store_checks import HEALTH_PATH
from utils.check_install import INSTALL_GPU, read_lock

AGENTS = [
    name for name in registry.names() if registry.get(name).folder.parent == ROOT
]  # none of the tests' own
SCRIPTS = sorted(
    str(p.relative_to(ROOT)) for place in ("*.sh", "*/*.sh", ".ci/run") for p in ROOT.glob(place)
)
LOADED_IF_THERE = {"libittnotify.so"}  # Intel's profiler
LOCKS = {name: read_lock(ROOT / "requirements" / name) for name in ("cpu.txt", "gpu.txt")}


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_parse_and_stop_at_the_first_failure(script: str) -> None:
    subprocess.run(["bash", "-n", ROOT / script], check=True)
    options = (
        "set -uo pipefail" if script == "check.sh" else "set -euo pipefail"
    )  # check.sh runs every step, then fails
    assert options in (ROOT / script).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_are_pinned_and_name_no_host(lock: str) -> None:
    lines = (ROOT / "requirements" / lock).read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._+]+", line) for line in pins)
    assert len(pins) == len({re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in pins})


def test_the_cpu_lock_brings_no_cuda() -> None:
    names = {name.lower() for name in LOCKS["cpu.txt"]}
    assert not {name for name in names if name.startswith(("nvidia-c", "cuda"))}
    assert names.isdisjoint({"torch", "triton", "vllm"})


@pytest.mark.parametrize("lock", LOCKS)
def test_what_costs_all_triplets_is_locked(lock: str) -> None:
    assert LOCKS[lock]["opentelemetry-exporter-otlp-proto-http"] == "1.39.1"
    assert "litellm-enterprise" in LOCKS[lock]
    assert LOCKS[lock]["antlr4-python3-runtime"] == "4.9.3"


def test_the_gpu_lock_has_the_engine_verl_asks_for() -> None:
    gpu = LOCKS["gpu.txt"]
    assert (gpu["verl"], gpu["vllm"], gpu["torch"]) == ("0.9.1", "0.24.0", "2.11.0")
    assert (gpu["torchvision"], gpu["transformers"]) == ("0.26.0", "5.10.4")


def test_vllm_is_registered_under_its_name(tmp_path: Path) -> None:
    write_metadata(tmp_path, "0.27.1+cpu")
    [found] = importlib.metadata.distributions(path=[str(tmp_path)])
    assert (found.metadata["Name"], found.version) == ("vllm", "0.27.1+cpu")
    assert all(file.locate().exists() for file in found.files or [])


def install(venv: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "install.sh"],
        env=os.environ | {"VENV": str(venv)} | environment,
        cwd=venv.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_other_pythons_are_refused_by_name(tmp_path: Path) -> None:
    old = tmp_path / "python3.10"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.1\nexit 1\n')
    old.chmod(0o755)
    result = install(tmp_path / "venv", PYTHON=str(old))
    assert result.returncode == 2
    assert "Python 3.10.1" in result.stderr
    assert "needed: Python 3.11" in result.stderr
    assert not (tmp_path / "venv").exists()


def test_an_unknown_device_is_refused(tmp_path: Path) -> None:
    result = install(tmp_path / "venv", DEVICE="tpu")
    assert result.returncode == 2
    assert "use cpu or gpu" in result.stderr


def make_environment(folder: Path) -> None:
    """One with nothing but pip, and that borrowed: installing pip takes most of a minute."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python3.*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)


def test_an_unreachable_torch_index_is_named_and_nothing_is_stamped(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    make_environment(tmp_path / "venv")
    result = install(
        tmp_path / "venv",
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(tmp_path),
        https_proxy=nowhere,
        HTTPS_PROXY=nowhere,
    )
    assert result.returncode == 1
    assert "does not answer" in result.stderr
    assert "PIP_FIND_LINKS=" in result.stderr
    assert not (tmp_path / "venv" / ".installed-lock").exists()


@pytest.mark.parametrize("agent", AGENTS)
def test_the_long_run_has_the_values_of_the_gpu_preset(agent: str) -> None:
    """A script of another agent than the SQL agent's says first what is different."""
    scripts = [
        (registry.get(name).folder / "train.sh").read_text(encoding="utf-8")
        for name in (agent, "sql")
    ]
    found = [re.findall(r"([A-Z_]+)=\"\$\{[A-Z_]+:-([^}$]+)\}\"", script) for script in scripts]
    defaults = dict(found[1]) | dict(found[0])
    preset = choose(registry.get(agent), "full", "cuda", 1)
    keys = dict(re.findall(r"\"([a-z_.]+)=\$([A-Z_]+)\"", scripts[1]))
    assert len(keys) >= 8
    for key, variable in keys.items():
        assert float(defaults[variable]) == float(preset[key]), key


@pytest.mark.parametrize("agent", AGENTS)
def test_the_long_run_starts_the_agents_own_command(agent: str, tmp_path: Path) -> None:
    """The scripts, copied beside a Python that says what it was given."""
    for name in ("sql", agent):
        (tmp_path / f"{name}_agent").mkdir(exist_ok=True)
        shutil.copy(registry.get(name).folder / "train.sh", tmp_path / f"{name}_agent" / "train.sh")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"')
    python.chmod(0o755)
    said = subprocess.run(
        [tmp_path / f"{agent}_agent" / "train.sh", "--lora"],
        check=True,
        capture_output=True,
        text=True,
    )
    given = said.stdout.splitlines()
    assert (given[0], given[-1]) == (f"train_{agent}_agent.py", "--lora")
    assert ROOT / given[given.index("--train-file") + 1] == registry.get(agent).splits["train"]
    assert ROOT / given[given.index("--val-file") + 1] == registry.get(agent).splits["val"]


def test_compose_starts_the_roles_with_a_token_and_opens_nothing() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"postgres", "tables", "store", "runners", "trainer", "serve"}
    served = services["serve"]
    assert served.pop("profiles"), "only where it is asked for"
    assert all(port.startswith("127.0.0.1:") for port in served.pop("ports"))
    assert not any(
        name in service
        for service in services.values()
        for name in ("ports", "privileged", "network_mode")
    )
    for name in ("store", "runners", "trainer", "serve"):
        assert services[name]["environment"]["AGL_TOKEN"].startswith("${AGL_TOKEN:?")
    for name in ("tables", "store", "runners", "trainer", "serve"):
        program = (
            services[name]["command"].split("python ")[1].replace("${AGENT:-sql}", "sql").split()
        )
        module = program[1].replace(".", "/") if program[0] == "-m" else program[0]
        places = (module, f"{module}.py", f"{module}/__main__.py")
        assert any((ROOT / place).is_file() for place in places), program
        assert "PASSWORD" not in services[name]["command"], "ps would show it"


def test_compose_bounds_what_its_containers_may_use_write_and_show() -> None:
    whole = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    services = whole["services"]
    for name, service in services.items():
        assert {"mem_limit", "pids_limit"} <= service.keys(), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        lasting = {"postgres", "store", "runners", "trainer", "serve"}
        assert ("healthcheck" in service) == (name in lasting), name
        if name != "postgres":
            assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
            mounted = [*service["tmpfs"], *service.get("volumes", [])]
            assert any(place.startswith("/tmp") for place in mounted), name
            assert name == "store" or any("/app/runs" in place for place in mounted), name
    # A secret made of the environment cannot be put into a read-only file system.
    assert not services["postgres"].get("read_only")
    assert "POSTGRES_PASSWORD" not in services["postgres"]["environment"]
    assert services["postgres"]["secrets"] == [*whole["secrets"]]
    assert HEALTH in services["trainer"]["healthcheck"]["test"]
    assert HEALTH_PATH in services["store"]["healthcheck"]["test"]
    assert endpoint.HEALTH in services["serve"]["healthcheck"]["test"]


def test_the_dockerfile_installs_from_the_locks() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    stages = [line.split()[-1] for line in lines if line.startswith("FROM ")]
    assert stages == ["base", "cpu", "gpu"]
    runs = [line for line in lines if "./install.sh" in line and line.startswith("RUN")]
    assert [("DEVICE=gpu" in line) for line in runs] == [False, True]
    copied = [source for line in lines if line.startswith("COPY") for source in line.split()[2:-1]]
    assert all((ROOT / source).exists() for source in copied)
    assert all(line.split()[1] != "root" for line in lines if line.startswith("USER"))


def bare_machine(folder: Path, user: int, apt: str | None) -> dict[str, str]:
    """A PATH with what install.sh itself needs, an account, and an apt-get that does what is said
    (None: there is none).
    """
    programs = folder / "bin"
    programs.mkdir()
    needed = "bash dirname grep tail tr uname cat sha256sum cut rm chmod"
    for name in needed.split():
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / "id").write_text(f"#!/bin/sh\necho {user}\n")
    if apt is not None:
        (programs / "apt-get").write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\n{apt}\n')
    for name in ("id", "apt-get"):
        if (programs / name).exists():
            (programs / name).chmod(0o755)
    return {"PATH": str(programs), "DEBIAN_FRONTEND": "", "VENV": str(folder / "venv")}


def copied_installer(folder: Path) -> Path:
    """install.sh in a folder of its own, without a Python: it says what it does about packages, and
    ends.
    """
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
def test_who_cannot_install_packages_is_told_the_line_and_the_rest_goes_on(
    tmp_path: Path, user: int, apt: str | None
) -> None:
    environment = bare_machine(tmp_path, user, apt)
    script = copied_installer(tmp_path)
    told = subprocess.run(
        [script, "some_agent"], env=environment, capture_output=True, text=True, check=False
    )
    assert "not on this machine: its-package another-package. As root" in told.stderr
    line = "apt-get update && apt-get install -y --no-install-recommends its-package another"
    assert line in told.stderr
    assert "no Python 3.11 or 3.12 found" in told.stderr, "it ended before the rest"
    assert not (tmp_path / "asked").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="writes policy-rc.d, as root does")
@pytest.mark.parametrize("fails", [False, True])
def test_root_gets_the_packages_and_no_server_of_them_is_started(
    tmp_path: Path, fails: bool
) -> None:
    policy = Path("/usr/sbin/policy-rc.d")
    there_before = policy.exists()
    seen = f"/bin/cp {policy} {tmp_path}/policy; echo unable to locate; exit {int(fails)}"
    environment = bare_machine(tmp_path, 0, f'[ "$1" = update ] || {{ {seen}; }}')
    script = copied_installer(tmp_path)
    told = subprocess.run(
        [script, "some_agent"], env=environment, capture_output=True, text=True, check=False
    )
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "update -qq"
    assert asked[1].endswith("--no-install-recommends its-package another-package")
    assert "exit 101" in (tmp_path / "policy").read_text()
    assert policy.exists() == there_before
    assert ("unable to locate" in told.stderr) == fails
    assert ("apt could not install its-package another-package" in told.stderr) == fails
    assert "no Python 3.11 or 3.12 found" in told.stderr, "it ended before the rest"


def test_a_folder_that_is_none_and_an_unknown_option_are_refused(tmp_path: Path) -> None:
    script = copied_installer(tmp_path)
    for argument, said in {"no_agent": "there is no folder no_agent", "--again": "--again"}.items():
        told = subprocess.run([script, argument], capture_output=True, text=True, check=False)
        assert (told.returncode, said in told.stderr) == (2, True)


@pytest.mark.parametrize(
    ("target", "folder"), [("train AGENT=code", "code_agent"), ("test", "tests"), ("unit", "")]
)
def test_a_target_installs_the_packages_it_needs_and_no_others(target: str, folder: str) -> None:
    # A make that runs these tests would have its own words printed by this one.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-n", *target.split()]
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, check=True)
    line = done.stdout.splitlines()[0]
    assert line.split() == ["./install.sh", *folder.split()]


def test_what_is_looked_for_is_what_brings_it() -> None:
    """Libraries of the engine, the sandbox of the code agent, and of the tests also what they skip
    without.
    """
    lists = {
        place: [
            line.split()
            for line in (ROOT / place / "debian-packages.txt").read_text().splitlines()
            if not line.startswith("#")
        ]
        for place in ("requirements", "code_agent", "tests")
    }
    assert lists["requirements"] == [
        [f"/usr/lib/*/{library}", package] for library, package in SYSTEM_LIBRARIES.items()
    ]
    assert lists["code_agent"] == [["bwrap", "bubblewrap"]]
    assert {package for _, package in lists["tests"]} == {
        "bubblewrap",
        "postgresql",
        "mariadb-server",
        "chromium",
        "libatomic1",
    }


def test_every_library_that_vllm_loads_is_brought_by_a_wheel_or_looked_for() -> None:
    """A bare Debian has none of them but those of libc6, libgcc-s1 and libstdc++6."""
    (packages,) = site.getsitepackages()
    debian = {f"lib{name}.so" for name in ("c", "m", "dl", "pthread", "rt", "gcc_s", "stdc++")}
    (built,) = Path(packages, "vllm").glob("_C.abi3.so")
    named = re.findall(rb"(?<=\0)(lib[\w+-]+\.so)((?:\.\d+)*)(?=\0)", built.read_bytes())
    needed = {(name + number).decode() for name, number in named if name.decode() not in debian}
    brought = {path.name for path in Path(packages, "torch", "lib").iterdir()}
    assert needed - brought - LOADED_IF_THERE == SYSTEM_LIBRARIES.keys()


def test_a_missing_library_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "SYSTEM_LIBRARIES", {"libnone.so.7": "libnone7"})
    with pytest.raises(ConfigError, match=r"libnone\.so\.7.*apt-get install libnone7"):
        device.check_libraries("cpu")
    device.check_libraries("cuda")


def test_the_packages_of_the_cpu_lock_are_looked_for_without_being_asked(tmp_path: Path) -> None:
    environment = bare_machine(tmp_path, 1000, None)
    script = copied_installer(tmp_path)
    (script.parent / "requirements" / "gpu.txt").touch()
    listed = script.parent / "requirements" / "debian-packages.txt"
    listed.write_text("/no/such/*/library its-package\n")
    for lock, named in (("cpu", True), ("gpu", False)):
        told = subprocess.run(
            [script],
            env=environment | {"DEVICE": lock},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ("not on this machine: its-package." in told.stderr) == named, told.stderr


def test_what_check_install_advises_mends_a_package_that_the_stamp_calls_installed(
    tmp_path: Path,
) -> None:
    """A lock of two small packages, installed for real; one file is damaged afterwards."""
    copy = tmp_path / "copy"
    (copy / "requirements").mkdir(parents=True)
    shutil.copy(ROOT / "install.sh", copy)
    shutil.copy(ROOT / "requirements" / "vllm_metadata.py", copy / "requirements")
    (copy / "requirements" / "gpu.txt").write_text("small-one==1.0\nsmall-two==1.0\n")
    for name in ("small_one", "small_two"):
        made = {f"{name}.py": "VALUE = 1\n"}
        info = f"{name}-1.0.dist-info"
        made[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        made[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        made[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*made, f"{info}/RECORD"])
        with zipfile.ZipFile(copy / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            for path, text in made.items():
                wheel.writestr(path, text)
    make_environment(copy / ".venv")
    only_here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(copy), "DEVICE": "gpu"}

    def run(*line: str) -> str:
        told = subprocess.run(
            line, cwd=copy, env=os.environ | only_here, capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stdout + told.stderr
        return told.stdout

    assert "Installed in" in run("./install.sh")
    [module] = (copy / ".venv").glob("lib/python3.*/site-packages/small_two.py")
    module.write_text("def damaged(")
    assert run("./install.sh") == ""
    assert module.read_text() == "def damaged("
    run(*INSTALL_GPU.split()[2:])
    assert module.read_text() == "VALUE = 1\n"


def ignored(rules: list[str], path: str) -> bool:
    """Whether Docker leaves a path out: the last rule that matches it, or a folder above it,
    decides.
    """
    places = [path, *map(str, Path(path).parents)][:-1]
    found = False
    for rule in rules:
        pattern = re.escape(rule.lstrip("!")).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(pattern, place) for place in places):
            found = not rule.startswith("!")
    return found


def test_the_image_gets_what_is_committed_and_neither_keys_nor_databases() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    kept = "sql_agent/agent.py common/settings.py env_template data/medical.db tools/sql/sqlite.py"
    kept += " data/ehr/tables/hospital.db requirements/cpu.txt sql_agent/tiny_model/tokenizer.json"
    assert [path for path in kept.split() if ignored(rules, path)] == []
    out = ".env .env.prod prod.env key.ppk id_dsa code_agent/.env server.pem certs/tls.key id_rsa keys/id_ed25519 .netrc"
    out += " credentials.toml code_agent/credentials.json patients.db data/mine.sqlite3 a/b.duckdb"
    out += " runs/mine/summary.json store/store.sqlite .aws/credentials data/medical.db-wal x/dump.sql.gz"
    assert [path for path in out.split() if not ignored(rules, path)] == []
