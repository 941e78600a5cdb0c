"""One laboratory at a time: what measures inside of a lab shares this machine with it, and studies wait."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path


def shared_machine(what: str, *, wait: bool) -> AbstractContextManager[None]:
    """Inside of a lab, holds the machine together with other labs while `what` goes on. Raises UserError if a study is
    busy, or waits for it."""
    from linerate.node import inside_lab

    if not inside_lab():
        return nullcontext()
    from linerate.cli.study.laboratory import tell_waiting
    from linerate.lab.machine_lock import machine_lock

    return machine_lock(what, Path.cwd(), alone=False, wait=wait, tell=tell_waiting)
