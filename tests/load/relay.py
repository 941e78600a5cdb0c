"""A TCP relay that can be cut like a cable: data under way stay there, and no end gets an error.

It can also drop its connections.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Relay:
    """Listens on a port of its own and passes on to `target`, in threads, while the `with` block lasts."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._flowing = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def portal(self) -> str:
        """Address and port."""
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def cut(self) -> None:
        """Holds everything back, in both directions."""
        self._flowing.clear()

    def mend(self) -> None:
        """Lets it go on, with what was held back."""
        self._flowing.set()

    def drop(self) -> None:
        """Ends every connection at both ends; new ones are taken."""
        with self._lock:
            ended, self._open = self._open, []
        for one in ended:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is shut down at the end
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                with self._lock:
                    self._open += [near, far]
                joining = threading.Thread(target=self._join, args=(near, far), daemon=True)
                self._threads.append(joining)
                joining.start()

    def _join(self, near: socket.socket, far: socket.socket) -> None:
        with near, far:
            back = threading.Thread(target=self._pump, args=(far, near), daemon=True)
            back.start()
            self._pump(near, far)
            back.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._flowing.wait()
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        """Begins to listen."""
        self._flowing.set()
        accepting = threading.Thread(target=self._accept, daemon=True)
        self._threads.append(accepting)
        accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends everything."""
        self._flowing.set()
        with self._lock:
            ended = [self._listener, *self._open]
        for one in ended:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=5.0)
