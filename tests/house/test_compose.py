"""What the services of compose.yaml are given."""

import re
import shlex

import yaml

from common.settings import ROOT
from episodes import registry
from training.start.arguments import parse

FILE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
# Of a run on one machine, fixed by compose.yaml itself, or of a program that no service runs
OF_THE_MACHINE = re.compile(
    "AGL_(MANAGED_STORE|CURRENT_ROLE|SERVER_HOST|SERVER_PORT|TOKEN)|DATABASE_URL|"
    "LLM_PROXY_(HOST|PORT|PUBLIC_HOST)|OPENAI_(BASE_URL|API_KEY)"
)


def test_a_service_gets_the_variables_that_it_reads_and_no_others():
    services = yaml.safe_load(FILE)["services"]
    template = (ROOT / "env_template").read_text(encoding="utf-8")
    known = set(re.findall(r"^([A-Z_]+)=", template, re.MULTILINE))
    given = {name: set(service.get("environment") or {}) for name, service in services.items()}
    assert all(map(OF_THE_MACHINE.fullmatch, known - set().union(*given.values())))
    have = {
        variable: {name for name, variables in given.items() if variable in variables}
        for variable in ("TEACHER_API_KEY", "WANDB_API_KEY", "PATIENT_API_KEY", "SIMULATOR_API_KEY")
    }
    assert have == {
        "TEACHER_API_KEY": {"runners", "trainer"},
        "WANDB_API_KEY": {"trainer"},
        "PATIENT_API_KEY": {"runners", "serve"},
        "SIMULATOR_API_KEY": {"runners", "serve"},
    }
    commands = " ".join(str(service.get("command")) for service in services.values())
    keys = [name for name in known if name.endswith(("KEY", "TOKEN", "PASSWORD"))]
    assert [name for name in keys if name in commands] == []


def test_the_flags_of_the_example_exist():
    found = re.findall(r"AGENT=(\w+) ARGS='([^']*)'.*?`(--[^`]*)`", FILE)
    assert found
    for agent, *words in found:
        parse(registry.get(agent), shlex.split(" ".join(words)))
