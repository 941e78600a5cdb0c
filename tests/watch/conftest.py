"""A page server in a thread, and a plain HTTP client of it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest
from linerate.results import RunDirectory
from linerate.watch import DirectorySource, PageServer, Source

from tests.support.samples.path_run import PathLoad, Way, make_path_run
from tests.support.samples.plugin import histogram_decoder

__all__ = ["histogram_decoder"]

TIMEOUT_S = 30.0
AnySource = TypeVar("AnySource", bound=Source)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    data: dict[str, Any]


class Client:
    """Asks a page server, as its owner unless something else is said."""

    def __init__(self, server: PageServer) -> None:
        self.url = server.url
        self.port = server.port
        self.token = parse_qs(urlsplit(server.url).query)["token"][0]

    def ask(self, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> Answer:
        """Header names are written with `_` for `-`. `authorization=""` asks without the token."""
        connection, answer = self._begin(path, method, headers, body)
        with connection:
            return Answer(answer.status, dict(answer.headers), answer.read())

    def events(self, until: Callable[[Event], bool], last_id: str = "", path: str = "/events") -> list[Event]:
        """The events of a stream, up to the first that `until` accepts."""
        headers = {"last_event_id": last_id} if last_id else {}
        connection, answer = self._begin(path, "GET", headers)
        found: list[Event] = []
        with connection:
            fields: dict[str, str] = {}
            while line := answer.readline().decode():
                name, _, value = line.rstrip("\r\n").partition(": ")
                if name:
                    fields[name] = value
                elif "event" in fields:
                    found.append(Event(fields["id"], fields["event"], json.loads(fields["data"])))
                    fields = {}
                    if until(found[-1]):
                        return found
        return found

    def _begin(
        self, path: str, method: str, headers: dict[str, str], body: bytes = b""
    ) -> tuple[ExitStack, http.client.HTTPResponse]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.setdefault("authorization", f"Bearer {self.token}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        stack = ExitStack()
        stack.callback(connection.close)
        connection.putrequest(method, path, skip_host="host" in sent)
        for name, value in sent.items():
            connection.putheader(name, value)
        if body:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        return stack, connection.getresponse()


@contextmanager
def served(source: Source | Path) -> Iterator[Client]:
    """A page server while the block lasts."""
    server = PageServer(DirectorySource(source) if isinstance(source, Path) else source)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Client(server)
    finally:
        server.stop()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


_open: list[Source] = []


def kept(source: AnySource) -> AnySource:
    """A source that is closed when the test is over."""
    _open.append(source)
    return source


@pytest.fixture(autouse=True)
def close_sources() -> Iterator[None]:
    """Closes the sources that a test has kept."""
    yield
    while _open:
        _open.pop().close()


def polled(source: Source) -> list[tuple[str, dict[str, Any]]]:
    """Kind and data of all that is new."""
    return [(update.kind, dict(update.data)) for update in source.poll()]


@pytest.fixture
def path_run(tmp_path: Path) -> RunDirectory:
    """A closed run: p0 is dead for four of twenty intervals; the second step has one path fewer I/Os."""
    first = PathLoad(
        [Way("p0", [100] * 4 + [0] * 4 + [90] * 12, state="failed"), Way("p1", [100], 8.0)], intervals=20
    )
    second = PathLoad([Way("p0", [50]), Way("p1", [100], 8.0)], name="rd2", op="read", intervals=5)
    return make_path_run(tmp_path / "run", [first, second])
