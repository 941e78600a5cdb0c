"""How every HTTP server of Linerate is set: HTTP/1.1 by h11 on asyncio, without web sockets and without a log."""

from __future__ import annotations

from typing import Any

import uvicorn
from starlette.applications import Starlette


def http_settings(app: Starlette, *, log_level: str, **own: Any) -> uvicorn.Config:
    """Settings for an application; `own` are a server's own, by the names of `uvicorn.Config`."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level=log_level,
        access_log=False,
        server_header=False,
        ws="none",
        http="h11",
        loop="asyncio",
        **own,
    )
