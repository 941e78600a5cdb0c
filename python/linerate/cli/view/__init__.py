"""What a run looks like while it happens.

Everything that is worth showing is an event (`events`); a view shows events. `live` is a table that renews itself on a
terminal, `plain` one line per interval for pipes and logs, `ndjson` one JSON object per event for programs. `open_view`
chooses.
"""

from __future__ import annotations

from linerate.cli.console import console
from linerate.cli.view.base import RunView
from linerate.cli.view.live import LiveView
from linerate.cli.view.ndjson import NdjsonView
from linerate.cli.view.plain import PlainView

__all__ = ["RunView", "open_view"]


def open_view(*, json: bool) -> RunView:
    """JSON lines if asked for, else a live table on a terminal that can move its cursor, else plain lines."""
    if json:
        return NdjsonView()
    out = console()
    return LiveView(out) if out.is_terminal and not out.is_dumb_terminal else PlainView()
