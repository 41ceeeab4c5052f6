"""Run runner processes below a keeper that starts them again.

The keeper is forked before Ray and torch have threads. It starts a runner again RESTARTS times in
WINDOW_SECONDS, unless it ended as the one before it did. All end with the keeper's parent.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from typing import Any

import aiohttp
from agentlightning import ClientServerExecutionStrategy

from common.parent import end_with
from training.engine.watchdog import POLL_SECONDS, REPEATS_SECONDS, RESTARTS, WINDOW_SECONDS
from training.setup.plan import RunStopped
from training.store.store_client import StoreClient, give_up, worker_name

logger = logging.getLogger(__name__)

ANY_EXIT_CODE = range(-64, 256)
# Seconds that stopped runners have for giving back their rollouts. A frozen one takes longer
END_SECONDS = 6.0
STOPS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Runner:
    """A runner process, when it began (monotonic), and how the one it replaced ended, if any."""

    number: int
    process: Any
    begun: float
    replaced: int | None = None


class Keeper:
    """The process above the runners. start: begins a runner. say: prints for people."""

    def __init__(
        self, start: Callable[[int], Any], store: StoreClient, say: Callable[[str], None]
    ) -> None:
        self.start = start
        self.store = store
        self.say = say
        self.runners: list[Runner] = []
        self._restarts: deque[float] = deque(maxlen=RESTARTS)

    def keep(self, count: int, stopped: Callable[[], bool]) -> int:
        """Keep so many runners until `stopped` or none is left. Return the last exit code."""
        code = 0
        for number in range(count):
            self.runners.append(Runner(number, self.start(number), time.monotonic()))
        while self.runners and not stopped():
            wait([runner.process.sentinel for runner in self.runners], POLL_SECONDS)
            ended = [one for one in self.runners if one.process.exitcode is not None]
            for runner in ended:
                code = runner.process.exitcode
                self.runners.remove(runner)
                if code:  # 0 means that it was asked to stop
                    self._replace(runner, code)
        for runner in self.runners:
            runner.process.join(END_SECONDS)
            runner.process.kill()
            runner.process.join()
        return code

    def refusal(self, runner: Runner, code: int, now: float) -> str | None:
        """Return why a runner that ended with this code is not started again, or None if it is."""
        if runner.replaced == code and now - runner.begun < REPEATS_SECONDS:
            return "as the one before it did, and is not started again"
        if len(self._restarts) == RESTARTS and now - self._restarts[0] < WINDOW_SECONDS:
            return f"and is not started again, after {RESTARTS} times in {WINDOW_SECONDS:.0f} s"
        self._restarts.append(now)
        return None

    def _replace(self, runner: Runner, code: int) -> None:
        now = time.monotonic()
        refusal = self.refusal(runner, code, now)
        if not refusal:
            self.runners.append(Runner(runner.number, self.start(runner.number), now, code))
        text = (
            f"{runner.process.name} ended with exit code {code} (killed? out of memory?) "
            f"{refusal or 'and is started again'}; "
            f"runners left, which play its rollouts too: {len(self.runners)}"
        )
        logger.warning(text)
        self.say(text)
        worker = worker_name(runner.process.pid)

        async def hand_over() -> None:
            client = StoreClient(self.store.server_address_root, self.store.token)
            try:
                await give_up(client, worker)
            except (aiohttp.ClientError, TimeoutError) as error:  # its watchdog finds them later
                logger.warning("the store did not take back what %s played (%s)", worker, error)
            finally:
                await client.close()

        asyncio.run(hand_over())


class KeptRunners(ClientServerExecutionStrategy):
    """The algorithm in this process, and `n_runners` runners below a keeper."""

    def __init__(self, role: Any, n_runners: int) -> None:
        # agent-lightning starts no runner itself: it would play a lone one in this process, where
        # no keeper could start it again.
        super().__init__(
            role=role, n_runners=0, managed_store=False, allowed_exit_codes=ANY_EXIT_CODE
        )
        self.count = n_runners

    @property
    def failed(self) -> bool:
        """Whether the last runner ended though nobody had asked it to."""
        return bool(self._keeper.exitcode)

    def look(self) -> None:
        """Print what the keeper reported. Raises RunStopped if no runner is left."""
        while not self._news.empty():
            print(self._news.get(), flush=True)
        if self._keeper.exitcode is not None:
            raise RunStopped(
                f"the last runner ended with exit code {self._keeper.exitcode} (over 128: by a "
                "signal). See run.log in the run folder, then resume with --resume."
            )

    def _spawn_runners(self, runner: Any, store: Any, stop_evt: Any, *, ctx: Any) -> list[Any]:
        self._news = ctx.SimpleQueue()
        inherited = (ctx, runner, store, stop_evt)
        self._keeper = ctx.Process(target=self._keep, args=inherited, name="runners")
        self._keeper.start()
        return [self._keeper]

    def _keep(self, ctx: Any, runner: Any, store: StoreClient, stop_evt: Any) -> None:
        end_with(os.getppid())
        # Runners get the stop event themselves
        before = {number: signal.signal(number, lambda *_: None) for number in STOPS}

        def start(number: int) -> Any:
            inherited = (runner, number, store, stop_evt, before)
            process = ctx.Process(target=_play, args=inherited, name=f"runner-{number}")
            process.start()
            return process

        say = self._news.put if self.role == "both" else partial(print, flush=True)
        code = Keeper(start, store, say).keep(self.count, stop_evt.is_set)
        if stop_evt.is_set():
            sys.exit(0)
        sys.exit(128 - code if code < 0 else code)


def _play(runner: Any, number: int, store: Any, stop_evt: Any, handlers: dict[int, Any]) -> None:
    for name, handler in handlers.items():
        signal.signal(name, handler)
    end_with(os.getppid())  # a runner left behind would play the next run's rollouts
    with suppress(KeyboardInterrupt):
        try:
            asyncio.run(runner(store, number, stop_evt))
        except (Exception, SystemExit):
            sys.exit(1)
