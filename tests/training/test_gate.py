"""The gate between calls and weights, and the seeds of calls that two runs agree on."""

import asyncio
from typing import Any

import pytest

from training.proxy.gate import CallGate, RequestSeeds


async def test_a_change_waits_for_calls_in_flight_and_calls_wait_for_the_change():
    gate, order, answered = CallGate(), [], asyncio.Event()

    async def call(name: str) -> None:
        async with gate:
            order.append(f"{name} begins")
            await answered.wait()
            order.append(f"{name} ends")

    early = asyncio.create_task(call("early"))
    while not order:
        await asyncio.sleep(0)
    closing = asyncio.create_task(asyncio.to_thread(gate.close, 60.0))
    while not gate._closed:
        await asyncio.sleep(0.01)
    late = asyncio.create_task(call("late"))
    await asyncio.sleep(0.05)
    assert not closing.done(), "a call is in flight"
    answered.set()
    done, _ = await asyncio.wait({closing}, timeout=20)
    assert done, "nobody told the change that the last call has ended"
    order.append("weights change")
    await asyncio.sleep(0.05)
    gate.open()
    await asyncio.gather(early, late)
    assert order == ["early begins", "early ends", "weights change", "late begins", "late ends"]


async def test_a_caller_that_goes_away_while_waiting_is_not_counted():
    gate = CallGate()
    gate.close(1.0)

    async def call() -> None:
        async with gate:
            raise AssertionError("the gate was closed")

    waiting = asyncio.create_task(call())
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.open()
    await asyncio.sleep(0.01)
    gate.close(1.0)  # would time out if the call had been counted
    gate.open()


async def test_a_failing_call_leaves_the_gate():
    gate = CallGate()
    with pytest.raises(ValueError, match="broken"):
        async with gate:
            raise ValueError("broken")
    gate.close(0.05)


def request(text: str, call_id: str = "a") -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "query", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    told = {"role": "tool", "tool_call_id": call_id, "content": "[]"}
    messages = [{"role": "user", "content": text}, said, told]
    return {"model": "m", "messages": messages}


def test_the_same_questions_get_the_same_seeds_in_any_order():
    first, second = RequestSeeds(42), RequestSeeds(42)
    asked = [request("p", "x"), request("p", "y"), request("q", "z")]
    seeds = [first.add(one)["seed"] for one in asked]
    assert len(set(seeds)) == 3
    assert sorted(seeds) == sorted(second.add(one)["seed"] for one in reversed(asked))


def test_the_episodes_of_a_group_ask_the_same_and_are_each_sampled_anew():
    """With one seed they would be the same episode, with the same reward, and teach nothing."""
    seeds = RequestSeeds(42)
    assert len({seeds.add(request("p"))["seed"] for _ in range(8)}) == 8
