"""A small FHIR server: the patients and laboratory values of the invented hospital, over HTTP on
the loopback address.

Patients are named S and their number. The hospital's times lie in the 2100s, so a case adds values
of its own to them.
"""

import csv
import json
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from common.settings import ROOT
from tests.serving import JsonHandler

TABLES = ROOT / "data" / "ehr" / "tables"
PAGE = 20  # resources of an answer where a request does not say how many it wants (_count)


class FHIRServer(ThreadingHTTPServer):
    """observations: what is known beyond the hospital, as (patient, code, time, value). asked:
    paths of requests. moved: where a resource redirects to. broken: what goes wrong with a
    resource: "status" (500), "page" (no JSON) or "silence" (the connection ends). most: resources
    of an answer, however many a request wants.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/fhir/"
        with (TABLES / "patients.csv").open(encoding="utf-8") as file:
            self.patients = {f"S{row['subject_id']}": row for row in csv.DictReader(file)}
        self.observations: list[tuple[str, str, str, float]] = []
        self.asked: list[str] = []
        self.moved: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.most = 5000

    def answer(self, resource: str, query: dict[str, list[str]]) -> dict[str, Any] | None:
        if resource == "Patient":
            named = [name for name in query.get("identifier", ()) if name in self.patients]
            born = [self.patients[name]["dob"][:10] for name in named]
            return _bundle([{"resourceType": "Patient", "birthDate": date} for date in born])
        if resource == "Observation":
            asked = (query.get("patient", [""])[0], query.get("code", [""])[0])
            found = [_observation(*one) for one in self.observations if one[:2] == asked]
            most = min(int(query.get("_count", [PAGE])[0]), self.most)
            further = {"relation": "next", "url": f"{self.url[:-1]}?_getpages=1"}
            return _bundle(found, most) | ({"link": [further]} if len(found) > most else {})
        return None


def _observation(patient: str, code: str, time: str, value: float) -> dict[str, Any]:
    about = {"subject": {"reference": f"Patient/{patient}"}, "code": {"text": code}}
    measured = {"effectiveDateTime": time, "valueQuantity": {"value": value, "unit": "mg/dL"}}
    return {"resourceType": "Observation", **about, **measured}


def _bundle(resources: list[dict[str, Any]], most: int = PAGE) -> dict[str, Any]:
    return {
        "resourceType": "Bundle",
        "total": len(resources),
        "entry": [{"resource": one} for one in resources[:most]],
    }


class _Handler(JsonHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, FHIRServer)
        parts = urlsplit(self.path)
        server.asked.append(self.path)
        resource = parts.path.rsplit("/", 1)[-1]
        if resource in server.moved:
            self.answer(b"", 302, Location=server.moved[resource])
            return
        failure = server.broken.get(resource, "")
        if failure == "silence":
            self.connection.close()
            return
        found = server.answer(resource, parse_qs(parts.query))
        known = {"resourceType": "OperationOutcome"} if found is None else found
        text = b"<html>" if failure == "page" else json.dumps(known).encode()
        status = {"status": 500, "page": 200}.get(failure, 404 if found is None else 200)
        self.answer(text, status, Content_Type="application/fhir+json")
