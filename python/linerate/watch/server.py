"""The web server of the page: on loopback only, for those who know its token.

    /                 the page; `?token=` is exchanged for a cookie, so that the token leaves the address bar
    /static/NAME      its parts
    /events           server-sent events (`feed`); Last-Event-ID, or `?last=`, resumes
    /metrics          OpenMetrics; `Authorization: Bearer TOKEN`
    /cable            of a lab only: POST pulls a cable, or plugs it in (`cable`)

A web site elsewhere could make a browser send requests to loopback, so the Host header must name loopback, the cookie
is kept from other sites, and the page may load nothing from anywhere else.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

import anyio
import uvicorn
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linerate.array.figures.openmetrics import CONTENT_TYPE
from linerate.array.httpd import http_settings
from linerate.errors import HostError
from linerate.watch.cable import cable_route
from linerate.watch.live import Live
from linerate.watch.san import LabSource
from linerate.watch.source import Source

ADDRESS = "127.0.0.1"
HOSTS = ("127.0.0.1", "localhost")
STOP_TIMEOUT_S = 3
PAGE = Path(__file__).parent / "page"
PARTS = {
    "app.js": "text/javascript",
    "array.js": "text/javascript",
    "cable.js": "text/javascript",
    "charts.js": "text/javascript",
    "figures.js": "text/javascript",
    "run.js": "text/javascript",
    "san.js": "text/javascript",
    "study.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
    "uplot/uPlot.iife.min.js": "text/javascript",
    "uplot/uPlot.min.css": "text/css",
}
"""The files that are served, and no others."""
_SAFE = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class PageServer:
    """The page of a source. It listens from the beginning; `run` serves."""

    def __init__(self, source: Source, port: int = 0) -> None:
        """Port 0: the kernel chooses. Raises HostError where the port cannot be had."""
        self._token = secrets.token_urlsafe(24)
        self._listening = _listen(port)
        self.port: int = self._listening.getsockname()[1]
        app, live = watch_app(source, self._token, self.port)
        settings = http_settings(app, log_level="critical", timeout_graceful_shutdown=STOP_TIMEOUT_S)
        self._server = _Server(settings, live)

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://{ADDRESS}:{self.port}/?token={self._token}"

    def run(self) -> None:
        """Serves until SIGINT, SIGTERM or `stop`."""
        with self._listening:
            self._server.run(sockets=[self._listening])

    def stop(self) -> None:
        """Tells browsers what came last, and ends `run`. Any thread may call it."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """Ends the streams of events before it waits for their connections."""

    def __init__(self, config: uvicorn.Config, live: Live) -> None:
        super().__init__(config)
        self._live = live

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Says goodbye to every page."""
        await self._live.end()
        await super().shutdown(sockets)


def watch_app(source: Source, token: str, port: int) -> tuple[Starlette, Live]:
    """The application, and what it reads from."""
    live = Live(source)

    @asynccontextmanager
    async def polling(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(live.run())
        yield
        await live.close(task)

    async def events(request: Request) -> Response:
        last_id = request.headers.get("last-event-id") or request.query_params.get("last", "")
        stream = _events(live, last_id)
        return EventSourceResponse(
            stream, shutdown_event=anyio.Event(), shutdown_grace_period=STOP_TIMEOUT_S - 1
        )

    async def metrics(request: Request) -> Response:
        return Response(await live.metrics(), media_type=CONTENT_TYPE)

    app = Starlette(
        routes=[
            Route("/", _page),
            Route("/static/{name:path}", _part),
            Route("/events", events),
            Route("/metrics", metrics),
            *([cable_route(source, live)] if isinstance(source, LabSource) else []),
        ],
        middleware=[
            Middleware(_Headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
            Middleware(_Token, token=token, cookie=f"linerate_{port}"),
        ],
        lifespan=polling,
    )
    return app, live


async def _events(live: Live, last_id: str) -> AsyncIterator[ServerSentEvent]:
    async for message in live.messages(last_id):
        yield ServerSentEvent(message.data, event=message.kind, id=message.id)


async def _page(request: Request) -> Response:
    return Response((PAGE / "index.html").read_bytes(), media_type="text/html")


async def _part(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in PARTS:
        return PlainTextResponse("there is no such file", 404)
    return Response((PAGE / name).read_bytes(), media_type=PARTS[name])


class _Headers:
    """Adds the headers that keep the page to itself, to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SAFE.items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, safe)


class _Token:
    """Lets through who knows the token: by cookie, by header, or in the address."""

    def __init__(self, app: ASGIApp, token: str, cookie: str) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        answer: ASGIApp = self._app
        if given and self._is_right(given) and scope["path"] == "/":
            answer = self._welcome()
        elif not any(map(self._is_right, (given, _bearer(headers), self._of_cookie(headers)))):
            answer = PlainTextResponse("open the address that `linerate watch` printed, with its token", 403)
        await answer(scope, receive, send)

    def _welcome(self) -> Response:
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie, self._token.decode(), httponly=True, samesite="strict")
        return response

    def _is_right(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _of_cookie(self, headers: Headers) -> str:
        cookies: SimpleCookie = SimpleCookie()
        cookies.load(headers.get("cookie", ""))
        return cookies[self._cookie].value if self._cookie in cookies else ""


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        raise HostError(
            f"port {port} of {ADDRESS}: {error.strerror}", "name a free port, or none: the system chooses one"
        ) from error
