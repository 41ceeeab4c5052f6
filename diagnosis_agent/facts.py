"""What evaluations say beyond the reward: numbers of one episode, and what was done in it."""

from statistics import fmean
from typing import Any

from diagnosis_agent.protocol import Conclusion
from diagnosis_agent.record_simulator import Exchange
from diagnosis_agent.reward import (
    conclusion_of,
    examination_values,
    key_of,
    key_seen,
    kinds_of,
    results_of,
    values_of,
)
from diagnosis_agent.single_turn import Next
from diagnosis_agent.task import DiagnosisTask
from episodes.agent import Record
from episodes.episode import Episode
from episodes.partner_agent import dialogue_of
from episodes.text_loop import Malformed


def facts_of(task: DiagnosisTask, episode: Episode) -> dict[str, float | None]:
    """Return an episode's numbers. Shares of orders are None without orders."""
    values = values_of(task, episode)
    kinds = kinds_of(episode)
    orders = len(results_of(episode))
    hits = [event.hit for event in episode.events if isinstance(event, Next)]
    shares = {
        f"{kind}_examinations": kinds[kind] / orders if orders else None
        for kind in ("repeated", "unavailable", "not_recorded")
    }
    return {
        "accuracy": values["diagnosis"],
        "accuracy_concluded": values["diagnosis"] if conclusion_of(episode) else None,
        **{f"exam_{name}": value for name, value in examination_values(task, episode).items()},
        "examinations": float(orders),
        **shares,
        "withheld_examinations": float(kinds["withheld"]),
        "malformed_replies": float(kinds["malformed"]),
        **({"next_examination_hit": fmean(hits)} if hits else {}),
    }


def record_of(task: DiagnosisTask, episode: Episode) -> Record:
    """Return the facts, gold, which of its examinations were seen, and the dialogue as it was understood."""
    kinds = (Exchange, Malformed, Conclusion)
    said = [event for event in episode.events if isinstance(event, kinds)]
    return {
        "facts": facts_of(task, episode),
        "condition": task.condition,
        "gold": {
            "diagnosis": task.reference,
            "aliases": list(task.aliases),
            "examinations": list(task.key),
        },
        "key": sorted(key_of(task)),
        "key_seen": sorted(key_seen(task, episode)),
        "dialogue": dialogue_of(said, episode, _turns),
    }


def _turns(event: Exchange | Malformed | Conclusion, text: str) -> list[dict[str, Any]]:
    doctor: dict[str, Any] = {"role": "doctor", "content": text}
    if isinstance(event, Exchange):
        back = {
            "role": "simulator",
            "content": event.result.text,
            "name": event.result.name,
            "kind": event.result.kind,
        }
        return [doctor | vars(event.order), back]
    return [doctor | ({"problem": event.problem} if isinstance(event, Malformed) else vars(event))]
