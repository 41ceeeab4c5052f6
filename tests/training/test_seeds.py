"""Seeds that two runs agree on, whoever asks first.

Keeps of docs/training.md, "The same run twice": a call's seed follows from what is asked,
not from who is first.
"""

import json

from training.proxy.gate import RequestSeeds


def request(text: str, call_id: str = "a") -> bytes:
    call = {"id": call_id, "type": "function", "function": {"name": "query", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "[]"},
    ]
    return json.dumps({"model": "m", "messages": messages}).encode()


def seed(seeds: RequestSeeds, body: bytes, version: int = 0) -> int:
    return int(json.loads(seeds.add(body, version))["seed"])


def test_the_same_questions_get_the_same_seeds_in_any_order() -> None:
    first, second = RequestSeeds(42), RequestSeeds(42)
    asked = [request("p", "x"), request("p", "y"), request("q", "z")]
    seeds = [seed(first, body) for body in asked]
    assert len(set(seeds)) == 3
    assert sorted(seeds) == sorted(seed(second, body) for body in reversed(asked))


def test_the_episodes_of_a_group_ask_the_same_and_are_each_sampled_anew() -> None:
    """With one seed they would be the same episode, with the same reward, and teach nothing."""
    seeds = RequestSeeds(42)
    assert len({seed(seeds, request("p")) for _ in range(8)}) == 8
