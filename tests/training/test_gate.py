"""The gate between calls and weights."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from training.gate import CallGate
from training.watch import RunStopped


async def test_a_change_waits_for_calls_in_flight_and_calls_wait_for_the_change() -> None:
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
    await closing
    order.append("weights change")
    await asyncio.sleep(0.05)
    gate.open()
    await asyncio.gather(early, late)
    assert order == ["early begins", "early ends", "weights change", "late begins", "late ends"]


async def test_a_call_that_never_ends_stops_the_run_and_says_so() -> None:
    gate = CallGate()
    async with gate:
        with pytest.raises(RunStopped, match="1 calls of the policy were not answered"):
            await asyncio.to_thread(gate.close, 0.05)


async def test_a_caller_that_goes_away_while_waiting_is_not_counted() -> None:
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


async def test_a_failing_call_leaves_the_gate() -> None:
    gate = CallGate()
    with pytest.raises(ValueError, match="broken"):
        async with gate:
            raise ValueError("broken")
    gate.close(0.05)


async def test_busy_are_the_seconds_with_a_call_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("training.gate.time", SimpleNamespace(monotonic=lambda: now))
    gate = CallGate()
    now = 10.0
    async with gate:
        now = 12.0
        async with gate:
            now = 13.0
            assert gate.busy_seconds() == 3.0
        now = 14.0
    now = 20.0
    assert gate.busy_seconds() == 4.0
    async with gate:
        now = 21.0
    assert gate.busy_seconds() == 5.0
