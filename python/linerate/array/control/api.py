"""The control API over HTTP: owners look at an array and manage it, partners use their verbs.

Each listener has an application of its own, which knows who asks: the owner by the Unix socket or by a token,
a partner by its certificate. Nothing but the document about itself is answered without that, and no body is
read. Errors are JSON: `error`, `hint` and `blame`.
"""

from __future__ import annotations

import hmac
import json
import logging
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from linerate.array.control.identity import identity_of
from linerate.array.control.openapi import document
from linerate.array.control.partnership import RUN_HEADER, Partnership
from linerate.array.control.report import ArrayReport
from linerate.array.control.service import OWNER, Caller, ControlService
from linerate.array.figures.metrics import array_metrics
from linerate.array.figures.openmetrics import CONTENT_TYPE, exposition_of
from linerate.errors import LinerateError, UserError

_LOG = logging.getLogger("linerate")

BODY_BYTES_MAX = 256 << 10
STATUS_BY_BLAME = {"user": 400, "peer": 502, "host": 503, "us": 500}

Gate = Callable[[Request], "Caller | Response"]
"""Who asks, or the refusal for a caller that may not."""


Respond = Callable[[dict[str, Any]], Response]
"""Writes a reply."""


class ControlHandler(Protocol):
    """What a route does for a caller."""

    def __call__(self, caller: Caller, body: bytes) -> dict[str, Any]:
        """Its reply. Raises LinerateError."""


def owner_app(service: ControlService, token: str | None) -> Starlette:
    """For owners. Without a token every caller of this listener is the owner."""
    gate = _Token(token) if token is not None else (lambda request: OWNER)
    return _app(
        Route("/v1/openapi.json", _describe, methods=["GET"]),
        Route("/v1/status", _Status(gate, service).answer, methods=["GET"]),
        Route("/metrics", _Metrics(gate, service).answer, methods=["GET"]),
        Route("/v1/commands/{verb}", _Verbs(gate, service.do).answer, methods=["POST"]),
    )


def partner_app(service: ControlService, partnership: Partnership) -> Starlette:
    """For partners, which the listener has let in by their certificate."""
    gate = _Certificate(partnership)
    return _app(Route("/v1/partner/{verb}", _Verbs(gate, service.do_for_partner).answer, methods=["POST"]))


def _app(*routes: Route) -> Starlette:
    return Starlette(routes=list(routes), exception_handlers={HTTPException: _no_such_place})


class _Token:
    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def __call__(self, request: Request) -> Caller | Response:
        proof = request.headers.get("authorization", "")
        given = proof.removeprefix("Bearer ").encode()
        if proof.startswith("Bearer ") and hmac.compare_digest(given, self._token):
            return OWNER
        return _error(
            401,
            "the token is missing or is not this array's",
            "send `Authorization: Bearer TOKEN`; `linerate array` needs none on the array's own machine",
        )


class _Certificate:
    def __init__(self, partnership: Partnership) -> None:
        self._partnership = partnership

    def __call__(self, request: Request) -> Caller | Response:
        host = request.client.host if request.client else "an unknown address"
        try:
            identity = identity_of(request.state.certificate)
            name = self._partnership.asked_by(identity, request.headers.get(RUN_HEADER, ""), host)
        except LinerateError as error:
            return _error(403, error.message, error.hint, error.blame)
        return Caller(name, identity, self._partnership.own.identity)


class _Answering:
    """A route: lets a caller in, reads the body, does the work."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def answered(
        self, request: Request, work: ControlHandler, respond: Respond = JSONResponse
    ) -> Response:
        caller = self._gate(request)
        if isinstance(caller, Response):
            return caller
        body = await _body(request)
        if body is None:
            return _error(413, f"a request has at most {BODY_BYTES_MAX} bytes", "send less")
        return await run_in_threadpool(_outcome, work, respond, caller, body)


class _Status(_Answering):
    def __init__(self, gate: Gate, service: ControlService) -> None:
        super().__init__(gate)
        self._service = service

    async def answer(self, request: Request) -> Response:
        return await self.answered(request, lambda caller, body: self._service.status())


class _Metrics(_Status):
    async def answer(self, request: Request) -> Response:
        return await self.answered(request, lambda caller, body: self._service.status(), _open_metrics)


class _Verbs(_Answering):
    def __init__(self, gate: Gate, do: Callable[[str, object, Caller], dict[str, Any]]) -> None:
        super().__init__(gate)
        self._do = do

    async def answer(self, request: Request) -> Response:
        verb = request.path_params["verb"]
        return await self.answered(request, lambda caller, body: self._do(verb, _fields(body), caller))


async def _body(request: Request) -> bytes | None:
    """The body, or None if it is too long; no more than that is ever held."""
    parts, length = [], 0
    async for part in request.stream():
        length += len(part)
        if length > BODY_BYTES_MAX:
            return None
        parts.append(part)
    return b"".join(parts)


def _fields(body: bytes) -> object:
    try:
        return json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise UserError("the body is no JSON", 'send an object: {"volume": "v"}') from error


def _outcome(work: ControlHandler, respond: Respond, caller: Caller, body: bytes) -> Response:
    try:
        return respond(work(caller, body))
    except LinerateError as error:
        return _error(STATUS_BY_BLAME[error.blame], error.message, error.hint, error.blame)
    except Exception as error:  # each request gets an answer; the text might hold data of the request
        _LOG.error("control API: %s in %s", type(error).__name__, _place_of(error))
        return _error(
            500, f"{type(error).__name__} in {_place_of(error)}", "this is a defect of Linerate", "us"
        )


def _open_metrics(status: dict[str, Any]) -> Response:
    text = exposition_of(array_metrics(ArrayReport.model_validate(status)))
    return Response(text, media_type=CONTENT_TYPE)


def _place_of(error: Exception) -> str:
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    return f"{PurePath(innermost.filename).name}:{innermost.lineno}"


def _error(status: int, error: str, hint: str, blame: str = "user") -> JSONResponse:
    return JSONResponse({"error": error, "hint": hint, "blame": blame}, status)


def _describe(request: Request) -> Response:
    return JSONResponse(document())


def _no_such_place(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = f"{request.method} {request.url.path}"
    return _error(status, f"there is no {what}", "GET /v1/openapi.json describes everything that there is")
