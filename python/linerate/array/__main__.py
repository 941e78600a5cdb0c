"""The process behind `EmbeddedArray`: it serves the requests of `linerate.rpc` on standard input until that closes.

`start` takes the configuration and gives the portals. Then `change`, `manage` and `stats` are possible.
`page_faults` is the process's own, asked of itself: a process cannot read that of another PID namespace in /proc.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from linerate import _core, rpc
from linerate.errors import UserError


class _Service:
    def __init__(self) -> None:
        self._array: _core.Array | None = None
        self.methods: rpc.Methods = {
            "start": self.start,
            "change": self.change,
            "manage": self.manage,
            "stats": self.stats,
            "page_faults": self.page_faults,
        }

    def start(self, **config: Any) -> list[tuple[str, int]]:
        self._array = _core.Array.start(json.dumps(config))
        return self._array.portals

    def change(self, **change: Any) -> None:
        self._started().change(json.dumps(change))

    def manage(self, **command: Any) -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(self._started().manage(json.dumps(command)))
        return reply

    def stats(self) -> dict[str, Any]:
        return self._started().stats()

    def page_faults(self) -> int:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_minflt + usage.ru_majflt

    def stop(self) -> None:
        if self._array is not None:
            self._array.stop()

    def _started(self) -> _core.Array:
        if self._array is None:
            raise UserError("the array is not started", "send start first")
        return self._array


def main() -> int:
    """Serves until standard input closes."""
    service = _Service()
    rpc.serve(service.methods, sys.stdin.buffer, sys.stdout.buffer)
    service.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
