"""A fixed range of TCP ports, for firewalls: one is taken on each machine for the scheduler and for each worker."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from linerate.errors import HostError, UserError

PORT_MAX = 65535
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class PortRange:
    """Ports from `first` to `last`, both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> PortRange:
        """From `7000-7010`, or `7000`. Raises UserError."""
        hint = f"write FIRST-LAST, such as 7000-7010, with ports from 1 to {PORT_MAX}"
        if (found := _RANGE.fullmatch(text.strip())) is None:
            raise UserError(f"{text}: not a range of ports", hint)
        first = int(found[1])
        last = int(found[2] or first)
        if not 1 <= first <= last <= PORT_MAX:
            raise UserError(f"{text}: not a range of ports", hint)
        return cls(first, last)

    def __str__(self) -> str:
        return f"{self.first}-{self.last}" if self.last > self.first else str(self.first)

    @property
    def as_dask(self) -> str:
        """As dask.distributed writes it."""
        return f"{self.first}:{self.last}" if self.last > self.first else str(self.first)

    def free(self, address: str | None) -> int:
        """The first port on which this machine can listen at `address` (None: at all of them). Raises HostError."""
        refused = ""
        for port in range(self.first, self.last + 1):
            try:
                try_to_listen(address, port)
            except OSError as error:
                refused = error.strerror or str(error)
                continue
            return port
        raise HostError(
            f"no port of {self} can be used: {refused}",
            "name a range with a free port for each process: on each host one, here one more",
        )


def try_to_listen(address: str | None, port: int = 0) -> None:
    """Raises OSError if this machine cannot listen there. Port 0: on any port."""
    family = socket.AF_INET6 if address and ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
        probe.bind((address or "", port))
        probe.listen()
