"""Polls a source while it has readers, and hands its messages to each of them.

Without readers nothing is polled: a page in a hidden tab, and a server without browsers, cost nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable

import anyio.to_thread

from linerate.errors import HostError, InternalError, LinerateError
from linerate.watch.feed import Feed, Message, Update, clear
from linerate.watch.metrics import exposition
from linerate.watch.source import Source

PERIOD_S = 0.5


class Live:
    """A source with its feed. All methods are called in one event loop; the source is polled in a thread of its own."""

    def __init__(self, source: Source, period_s: float = PERIOD_S) -> None:
        self.feed = Feed()
        self._source = source
        self._period_s = period_s
        self._readers = 0
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        self._polling = asyncio.Lock()
        self._is_ending = False
        self._has_trouble = False

    async def run(self) -> None:
        """Polls until it is cancelled."""
        while True:
            await self._wanted.wait()
            await self._poll()
            if not self._readers:
                self._wanted.clear()
            await asyncio.sleep(self._period_s)

    async def messages(self, last_id: str) -> AsyncIterator[Message]:
        """The messages after `last_id`, as they come, until `end`."""
        number = self.feed.number_of(last_id)
        self._readers += 1
        self._wanted.set()
        try:
            while True:
                changed = self._changed
                for message in self.feed.since(number):
                    number = message.number
                    yield message
                if self._is_ending:
                    return
                await changed.wait()
        finally:
            self._readers -= 1

    async def metrics(self) -> bytes:
        """The present metrics."""
        await self._poll()
        return await anyio.to_thread.run_sync(exposition, self._source)

    async def carry_out(self, work: Callable[[], Iterable[Update]]) -> None:
        """Does something to the source, between two polls, and tells what came of it. Raises what it raises."""
        async with self._polling:
            updates = await anyio.to_thread.run_sync(lambda: list(work()))
        if self.feed.add(updates):
            self._notify()

    async def end(self) -> None:
        """Tells the readers what came last, and that nothing more will come."""
        if self._readers:
            await self._poll()
        self.feed.add([Update("bye", {}, "bye")])
        self._is_ending = True
        self._notify()

    async def _poll(self) -> None:
        async with self._polling:
            updates, trouble = await anyio.to_thread.run_sync(_polled, self._source)
        if trouble is not None:
            updates.append(Update("trouble", {"message": trouble.message, "hint": trouble.hint}, "trouble"))
        elif self._has_trouble:
            updates.append(clear(["trouble"]))
        self._has_trouble = trouble is not None
        if self.feed.add(updates):
            self._notify()

    def _notify(self) -> None:
        told, self._changed = self._changed, asyncio.Event()
        told.set()

    async def close(self, task: asyncio.Task[None]) -> None:
        """Ends the polling, and lets go of the source."""
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        self._source.close()


def _polled(source: Source) -> tuple[list[Update], LinerateError | None]:
    """What is new, also if an error cut it short."""
    updates: list[Update] = []
    try:
        for update in source.poll():
            updates.append(update)
    except LinerateError as error:
        return updates, error
    except OSError as error:
        return updates, HostError(f"{error.filename or 'a file'} cannot be read: {error.strerror}")
    except Exception as error:  # the page says so; without it, it would stand still
        return updates, InternalError(f"{type(error).__name__}: {error}", "this is a defect of Linerate")
    return updates, None
