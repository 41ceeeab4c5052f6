"""Replies at every point of the recommended history, each asked by itself: --single-turn."""

from dataclasses import dataclass

from conditions.orders import covered_by
from diagnosis_agent.protocol import Conclusion, Order, read_reply
from diagnosis_agent.record_simulator import ordered, own_name
from diagnosis_agent.task import DiagnosisTask
from episodes.episode import Episode, Message, Policy
from episodes.outcomes import PolicyStop


@dataclass(frozen=True)
class Next:
    """A reply before the end. hit: it orders a recommended examination that is still to come."""

    hit: bool


async def play_points(policy: Policy, task: DiagnosisTask, history: list[Message]) -> Episode:
    """Return an episode with a reply at every point of the gold history. Its transcript is that of
    the last point, and a budget below the number of points leaves out the first ones.
    Raises EpisodeError: the policy's endpoint failed.
    """
    points = [at for at, message in enumerate(history) if message["role"] == "assistant"]
    episode = Episode(stop_reason="bad_reply")
    to_come = [own_name(name) for name in task.key]
    try:
        for number, at in [*enumerate(points)][-policy.max_turns :]:
            message = await policy.reply(history[:at])
            episode.messages = [*history[:at], message]
            said = read_reply(str(message["content"] or ""))
            if at < points[-1]:
                name = ordered(task, said.examination) if isinstance(said, Order) else None
                made = covered_by(own_name(name)) if name else frozenset()
                episode.events.append(Next(not made.isdisjoint(to_come[number:])))
            elif isinstance(said, Conclusion) and policy.finish_reason != "length":
                episode.events.append(said)
                episode.answer = str(said)
                episode.stop_reason = "answered"
    except PolicyStop as stop:
        episode.stop_reason = stop.reason
    return episode
