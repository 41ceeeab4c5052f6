"""`request_info` of medagentbench asks the FHIR server's resources, and nothing else."""

import json

import pytest

from code_agent.lookup import LookupRefused
from code_agent.tasks import medagentbench
from code_agent.tasks.fhir import fetch
from common.settings import load_settings
from episodes.episode import AgentError
from episodes.outcomes import EpisodeError
from tests.code_agent.fhir_server import FHIRServer
from tests.corpora import cases_of
from tests.serving import serving


@pytest.fixture
def servers():
    """The FHIR server, and another one on the same machine that nobody may ask."""
    pair = FHIRServer(), FHIRServer()
    with serving(pair[0]), serving(pair[1]):
        yield pair


# What may stand where a resource is expected. {base}: the server's address; {host}, {port}: another
# server's; {file}: a JSON file of this account.
HOSTILE = [*cases_of(__file__, "corpus/addresses"), "Patient/" + "a" * 100_000]


@pytest.mark.parametrize("form", HOSTILE, ids=ascii)
def test_an_address_of_the_policys_own_reaches_nothing(servers, tmp_path, form):
    server, other = servers
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"gold": "canary"}), encoding="utf-8")
    fields = {"host": f"127.0.0.1:{other.server_port}", "file": secret}
    asked = form.format(base=server.url, root=server.url.rstrip("/"), **fields)
    with pytest.raises(LookupRefused, match="resource") as refused:
        fetch(server.url, asked)
    assert "canary" not in str(refused.value)
    assert (server.asked, other.asked) == ([], [])


@pytest.mark.parametrize("form", cases_of(__file__, "corpus/resources"))
def test_a_resource_is_asked_below_the_base(servers, form):
    server, other = servers
    patient = next(iter(server.patients))
    found = fetch(server.url, form.format(base=server.url, patient=patient))
    assert found["entry"][0]["resource"]["resourceType"] == "Patient"
    assert [path.partition("?")[0] for path in server.asked] == ["/fhir/Patient"]
    assert other.asked == []


def test_a_redirect_is_followed_nowhere(servers):
    server, other = servers
    for target in (other.url + "Patient", "file:///etc/hostname", server.url + "Patient"):
        server.moved["Moved"] = target
        with pytest.raises(LookupRefused, match="status 302"):
            fetch(server.url, "Moved")
    assert set(server.asked) == {"/fhir/Moved"}
    assert other.asked == []


def test_a_proxy_of_the_environment_is_not_asked(servers, monkeypatch):
    server, other = servers
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{other.server_port}")
    assert fetch(server.url, "Patient")["total"] == 0
    assert other.asked == []


@pytest.mark.parametrize("failure", ["status", "page", "silence"])
def test_what_fails_at_one_resource_alone_is_the_policys_error(servers, failure):
    """Otherwise a policy could ask for it, and so drop an episode that it would lose."""
    server, _ = servers
    server.broken["Binary"] = failure
    with pytest.raises(LookupRefused, match="Binary"):
        fetch(server.url, "Binary")


@pytest.mark.parametrize("failure", ["status", "silence"])
def test_a_base_that_fails_is_the_machines(servers, failure):
    server, _ = servers
    server.broken |= {"Patient": failure, "metadata": failure}
    with pytest.raises(EpisodeError, match="database_error"):
        fetch(server.url, "Patient")


@pytest.mark.parametrize(
    "base", ["file:///etc/", "ftp://b/", "b:8080", "http://me:secret@b/", "http://h/?x=1"]
)
def test_a_base_that_is_none_is_named(monkeypatch, base):
    settings = load_settings().model_copy(update={"fhir_base_url": base})
    monkeypatch.setattr(medagentbench, "load_settings", lambda: settings)
    with pytest.raises(AgentError, match="without user") as caught:
        medagentbench.base_url()
    assert "secret" not in str(caught.value)
