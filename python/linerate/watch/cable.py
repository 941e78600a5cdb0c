"""The one request that changes something: a cable of a lab is pulled, or plugged in again.

    POST /cable   {"link": "h1.p0", "plugged": false}     204, or an error as JSON: `error` and `hint`

The token and the Host header are the server's to check. A page of another server on this machine counts as the same
site, and its requests carry the cookie: so the body has to be declared as JSON, which a browser lets no other origin
do unasked, and an Origin header has to name this server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from linerate.errors import LinerateError, UserError
from linerate.watch.feed import Update
from linerate.watch.live import Live
from linerate.watch.san import LabSource

BODY_BYTES_MAX = 1024
STATUS_BY_BLAME = {"user": 400, "peer": 502, "host": 503, "us": 500}
_FORM = 'send {"link": "h1.p0", "plugged": false} as application/json'


def cable_route(source: LabSource, live: Live) -> Route:
    """The route, for the lab that is watched."""

    async def cable(request: Request) -> Response:
        if refusal := _refusal(request):
            return refusal
        try:
            link, plugged = _asked(await _body(request))

            def work() -> Iterable[Update]:
                return source.cable(link, plugged=plugged)

            await live.carry_out(work)
        except LinerateError as error:
            return _error(STATUS_BY_BLAME[error.blame], error.message, error.hint)
        return Response(status_code=204)

    return Route("/cable", cable, methods=["POST"])


def _refusal(request: Request) -> Response | None:
    origin = request.headers.get("origin")
    if origin is not None and origin != f"http://{request.headers['host']}":
        return _error(
            403, "the request comes from a page of another server", "use the page of `linerate watch`"
        )
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return _error(415, "the body is not declared as JSON", _FORM)
    return None


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise UserError(f"the body has more than {BODY_BYTES_MAX} bytes", _FORM)
    return body


def _asked(body: bytes) -> tuple[str, bool]:
    """Which link, and whether it shall be plugged in. Raises UserError."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UserError("the body is no JSON", _FORM) from error
    link, plugged = (asked.get("link"), asked.get("plugged")) if isinstance(asked, dict) else (None, None)
    if not isinstance(link, str) or not isinstance(plugged, bool):
        raise UserError("the body names no link, or does not say whether it is plugged in", _FORM)
    return link, plugged


def _error(status: int, error: str, hint: str) -> JSONResponse:
    return JSONResponse({"error": error, "hint": hint}, status)
