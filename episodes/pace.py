"""The time limit of an episode, which is longer if the policy's server turns out to be slow."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

CALLS = 64  # the latest replies of a server, by which its speed is measured
MARGIN = 2.0  # times what the replies of an episode take at that speed
LONGEST = 4.0  # times the limit that was set: runners and store wait for no episode longer


class Limit(NamedTuple):
    """seconds: of an episode, scoring included. why: how it came about, for people."""

    seconds: float
    why: str


@dataclass
class Pace:
    """The latest replies of one model of a server, as this process saw them: seconds and tokens."""

    calls: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=CALLS))

    def note(self, seconds: float, tokens: int) -> None:
        self.calls.append((seconds, tokens))

    def tokens_per_second(self) -> float | None:
        """Return the tokens per second of one reply among others, or None before the first."""
        seconds = sum(one for one, _ in self.calls)
        tokens = sum(one for _, one in self.calls)
        return tokens / seconds if tokens and seconds > 0 else None

    def limit(self, timeout: float, replies: int, reply_tokens: int | None) -> Limit:
        """Return the limit in seconds of so many replies of `reply_tokens`, or of the longest so
        far.
        """
        speed = self.tokens_per_second()
        if speed is None:
            return Limit(
                timeout, "no reply of the policy's server was seen, so its speed is unknown"
            )
        most = reply_tokens or max(tokens for _, tokens in self.calls)
        needed = MARGIN * replies * most / speed
        seconds = min(max(timeout, needed), LONGEST * timeout)
        why = (
            f"at the {speed:.3g} tokens a second seen, {replies} "
            f"replies of {most} tokens take {needed / MARGIN:.3g} s"
        )
        if needed > LONGEST * timeout:
            why += (
                f", and an episode has at most {LONGEST:g} times "
                "EPISODE_TIMEOUT; raise it, or lower the concurrency"
            )
        return Limit(seconds, why)


_paces: dict[tuple[str, str], Pace] = {}


def pace_of(base_url: str, model: str) -> Pace:
    """Return the pace of a model at a server. All rollouts share it, whatever their URL's path."""
    return _paces.setdefault((urlsplit(base_url).netloc, model), Pace())
