"""The state of any of agent-lightning's stores as lines for people, in the store's own time."""

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
SILENT_SECONDS = 60.0  # a runner of ours is heard every 10 s


def look(url: str, token: str | None) -> str:
    """Return a store's state as lines for people. Raises ConfigError, Failure."""
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
    now = parsedate_to_datetime(answer.headers["date"]).timestamp()
    counts = []
    for name, states in STATES.items():
        total = _search(http, "rollouts", status_in=states, limit=1)["total"]
        counts.append(f"{total} {name}")
    lines = [
        f"store     {base}, up {duration(answer.json()['uptime'])}",
        f"rollouts  {', '.join(counts)}",
    ]
    for worker in _search(http, "workers")["items"]:
        heard = worker["last_heartbeat_time"] or worker["last_dequeue_time"]
        silence = "never heard" if heard is None else f"heard {max(0.0, now - heard):.0f} s ago"
        playing = (worker["heartbeat_stats"] or {}).get("episodes", "?")
        gone = ", gone or frozen" if heard and now - heard > SILENT_SECONDS else ""
        lines.append(f"runner    {worker['worker_id']}: {silence}, plays {playing}{gone}")
    return "\n".join(lines)


def _search(http: httpx.Client, what: str, **asked: Any) -> Any:
    return http.post(f"{what}/search", json=asked).raise_for_status().json()
