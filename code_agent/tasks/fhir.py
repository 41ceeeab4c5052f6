"""Reads a FHIR server for a policy that may be hostile: only GET, and only below one base.

A policy asks for a FHIR interaction (`Patient/S1`, `Observation?code=GLU`), never an address.
Redirects and proxies of the environment are not used.
"""

import json
import re
import time
from typing import Any
from urllib.parse import quote

import httpx

from code_agent.lookup import LookupRefused
from episodes.outcomes import EpisodeError

Bundle = dict[str, Any]

SECONDS = 20.0
MOST_BYTES = 2**25  # of an answer. 5,000 observations have about 8 MiB
# A type, an id, and its history. `metadata` has the form of a type
RESOURCE = re.compile(r"[A-Za-z]{1,64}(/[A-Za-z0-9.-]{1,64}(/_history(/[A-Za-z0-9.-]{1,64})?)?)?|")
# Characters that stay unchanged in a query. The rest is percent-encoded
IN_QUERY = "/?&=%:,|+-._~$!'()*;@"
EXPECTED = "expected a resource such as Observation?patient=S123&code=GLU"


def address(base: str, asked: str) -> str:
    """Return the address below `base` of a request. Raises LookupRefused for any other address."""
    place = base.rstrip("/")
    path = asked.strip().removeprefix("GET ").strip()
    if path.startswith((f"{place}/", f"{place}?")):
        path = path.removeprefix(place).removeprefix("/")
    resource, mark, query = path.partition("?")
    is_resource = RESOURCE.fullmatch(resource) and not set(resource.split("/")) & {".", ".."}
    if not path or not is_resource or "#" in query or not query.isprintable():
        raise LookupRefused(f"{path[:80]!r}: {EXPECTED}")
    return f"{place}/{resource}{mark}{quote(query, safe=IN_QUERY)}"


def fetch(base: str, asked: str) -> Bundle:
    """Return the answer to a GET. Raises LookupRefused, or EpisodeError without an answer."""
    target = address(base, asked)
    try:
        status, text = _get(target)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        _demand_alive(base)
        seen = str(error) or type(error).__name__
        raise LookupRefused(f"the FHIR server fails at {asked[:80]!r}: {seen}") from None
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        _demand_alive(base)
    if status != httpx.codes.OK:
        raise LookupRefused(f"the FHIR server answers {asked[:80]!r} with status {status}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LookupRefused(f"the FHIR server answers {asked[:80]!r} with something else than JSON")
    return found


def alive(base: str) -> str:
    """Return why the server does not answer, or "" if it does, even with an error."""
    try:
        status, _ = _get(address(base, "metadata"))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return str(error) or type(error).__name__
    return f"status {status}" if status >= httpx.codes.INTERNAL_SERVER_ERROR else ""


def _demand_alive(base: str) -> None:
    if why := alive(base):
        raise EpisodeError("database_error", f"the FHIR server at {base} does not answer: {why}")


def _get(url: str) -> tuple[int, bytes]:
    """Return status and body. Raises httpx.HTTPError: no answer, or one too long or too slow."""
    begun = time.monotonic()
    body = bytearray()
    with (
        httpx.Client(trust_env=False, follow_redirects=False, timeout=SECONDS) as client,
        client.stream("GET", url, headers={"Accept": "application/fhir+json"}) as reply,
    ):
        for part in reply.iter_bytes():
            body += part
            if len(body) > MOST_BYTES:
                raise httpx.ReadError(f"the answer has more than {MOST_BYTES:,} bytes")
            if time.monotonic() - begun > SECONDS:
                raise httpx.ReadTimeout(f"the answer takes more than {SECONDS:g} seconds")
        return reply.status_code, bytes(body)
