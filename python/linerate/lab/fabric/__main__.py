"""The fabric's process: it serves the requests of `linerate.rpc` on standard input until that closes.

- `start` takes a FabricSpec as parameters and answers when all TAPs exist,
- `stats` gives the counters so far,
- `change` takes a ChangeSpec as parameters and gives the monotonic time in ns at which it took effect. A change that
  is refused leaves the fabric as it was.

The TAPs end with the process. Only the data plane is imported here: the process is up within a tenth of a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

from linerate import rpc
from linerate._core import Fabric
from linerate.errors import UserError


class _Service:
    def __init__(self) -> None:
        self._fabric: Fabric | None = None
        self.methods: rpc.Methods = {"start": self.start, "stats": self.stats, "change": self.change}

    def start(self, **spec: Any) -> None:
        self._fabric = Fabric.start(json.dumps(spec))

    def stats(self) -> dict[str, Any]:
        return self._started().stats()

    def change(self, **change: Any) -> int:
        return self._started().change(json.dumps(change))

    def stop(self) -> None:
        if self._fabric is not None:
            self._fabric.stop()

    def _started(self) -> Fabric:
        if self._fabric is None:
            raise UserError("the fabric is not started", "send start first")
        return self._fabric


def main() -> int:
    """Serves until the input ends."""
    _go_first()
    service = _Service()
    try:
        rpc.serve(service.methods, sys.stdin.buffer, sys.stdout.buffer)
    except KeyboardInterrupt:
        pass  # as the end of the input
    finally:
        service.stop()
    return 0


def _go_first() -> None:
    """Schedules the fabric before other work of this host, as far as that is allowed: it models hardware.

    Linux shares processors out among sessions first, so a session of its own counts for more than any priority. The
    end of the input ends the process, so it needs no terminal's signals.
    """
    with contextlib.suppress(OSError):
        os.setsid()
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as autogroup:
            autogroup.write("-20")


if __name__ == "__main__":
    sys.exit(main())
