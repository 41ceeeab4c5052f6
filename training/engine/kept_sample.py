"""Choose the few episodes of each step that `episodes.jsonl` keeps in full (docs/runs.md)."""

from collections.abc import Callable, Sequence
from typing import Any

from training.engine.records import RolloutRecord
from training.engine.trajectories import TokenSequence, Trajectory

Decode = Callable[[list[int]], str]
Finished = tuple[RolloutRecord, Trajectory]

KEPT = 2  # episodes of the lowest reward, and as many of the highest: some kB each
LONGEST = 4  # bytes of one character, each of which may be a token
CUT = "\N{REPLACEMENT CHARACTER}"  # what half a character is decoded as


def sample_of(finished: Sequence[Finished]) -> list[Finished]:
    """Return the episodes with the lowest and the highest rewards, without those left out."""
    scored = [pair for pair in finished if pair[0].cause is None]
    scored.sort(key=lambda pair: pair[0].reward or 0.0)
    return scored[:KEPT] + scored[KEPT:][-KEPT:]  # the lowest, and the highest of the others


def keep(
    finished: Sequence[Finished], sample: Sequence[Finished], decode: Decode | None = None
) -> None:
    """Drop messages and own values of episodes outside the sample. With `decode` note its tokens."""
    kept = {id(record) for record, _ in sample}
    for record, trajectory in finished:
        if id(record) not in kept:
            record.transcript = None
            record.own = {}
        elif decode:
            record.tokens = [stretches(sequence, decode) for sequence in trajectory.sequences]


def stretches(sequence: TokenSequence, decode: Decode) -> list[dict[str, Any]]:
    """Return a sequence as stretches that are all trained, or all not and one text."""
    before = len(sequence.prompt_ids)
    ids = sequence.prompt_ids + sequence.response_ids
    mask = [0] * before + sequence.mask
    found = []
    end = 0
    while end < len(ids):
        begin = end
        while end < len(ids) and mask[end] == mask[begin]:
            end += 1
        part = ids[begin:end]
        trained = bool(mask[begin])
        texts = pieces(part, decode) if trained else [decode(part)]
        stretch = {"trained": trained, "ids": part, "texts": texts}
        if trained and sequence.log_probs is not None:
            values = sequence.log_probs[begin - before : end - before]
            stretch["log_probs"] = [round(value, 4) for value in values]
        found.append(stretch)
    return found


def pieces(ids: Sequence[int], decode: Decode) -> list[str]:
    """Return each token's text. Several tokens of one character: the last has it, the others ""."""
    texts: list[str] = []
    held: list[int] = []
    for number, token in enumerate(ids, start=1):
        held.append(token)
        text = decode(held)
        whole = not text.endswith(CUT) or len(held) == LONGEST or number == len(ids)
        texts.append(text if whole else "")
        held = [] if whole else held
    return texts
