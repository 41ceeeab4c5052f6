"""The state of a store as lines for people: `python -m training.store status URL`.

Asked by agent-lightning's own requests, so any of its stores will answer. Times are the store's
clock's.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from common.command import Failure
from common.terminal import duration
from training.setup.plan import ConfigError
from training.store.store_checks import ask, refusal

STATES = {
    "queued": ("queuing", "requeuing"),
    "running": ("preparing", "running"),
    "succeeded": ("succeeded",),
    "failed": ("failed", "cancelled"),
}
RATE_SECONDS = 60.0
SILENT_SECONDS = 60.0  # a runner of ours is heard every 10 s


def look(url: str, token: str | None) -> str:
    """Return a store's state as lines for people.

    Raises ConfigError: not a URL, or another token; Failure: no store answers.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url!r} is not a URL; expected http://HOST:PORT")
    base = url.rstrip("/")
    try:
        with ask(token) as http:
            http.base_url = httpx.URL(f"{base}/v1/agl/")
            return _look(base, http)
    except httpx.HTTPStatusError as error:
        if error.response.status_code == 401:
            raise ConfigError(refusal(base, token)) from None
        raise Failure(
            f"what answers at {base} is no store (status {error.response.status_code})"
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Failure(f"no store answers at {base} ({type(error).__name__})") from None
    except (ValueError, LookupError, TypeError):
        raise Failure(f"what answers at {base} is no store") from None


def _look(base: str, http: httpx.Client) -> str:
    answer = http.get("statistics").raise_for_status()
    now, known = parsedate_to_datetime(answer.headers["date"]).timestamp(), answer.json()
    ended = _search(http, "rollouts", status_in=[*STATES["succeeded"], *STATES["failed"]])["items"]
    counts = {
        name: _search(http, "rollouts", status_in=states, limit=1)["total"]
        for name, states in STATES.items()
    }
    recent = sum(rollout["end_time"] > now - RATE_SECONDS for rollout in ended)
    workers = sorted(_search(http, "workers")["items"], key=lambda worker: worker["worker_id"])
    return "\n".join(
        [
            f"store     {base}, up {duration(known['uptime'])}",
            "rollouts  " + ", ".join(f"{count} {name}" for name, count in counts.items()),
            f"rate      {recent} rollouts ended in the last minute",
            f"runners   {len(workers)}",
            *(_runner(worker, now) for worker in workers),
        ]
    )


def _search(http: httpx.Client, what: str, **asked: Any) -> Any:
    return http.post(f"{what}/search", json=asked).raise_for_status().json()


def _runner(worker: dict[str, Any], now: float) -> str:
    """Return a runner's line; agent-lightning's own does not show how many episodes it plays."""
    heard = worker["last_heartbeat_time"] or worker["last_dequeue_time"]
    silence = "never heard" if heard is None else f"heard {max(0.0, now - heard):.0f} s ago"
    playing = (worker["heartbeat_stats"] or {}).get("episodes")
    episodes = "" if playing is None else f", plays {playing}"
    gone = heard is not None and now - heard > SILENT_SECONDS
    return (
        f"          {worker['worker_id']}: {silence}{episodes}{', gone or frozen' if gone else ''}"
    )
