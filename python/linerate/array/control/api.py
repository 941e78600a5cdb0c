"""The control API over HTTP: whoever has the token looks at an array and manages it; partners use their verbs.

Nothing but the document about itself is answered without a token. Errors are JSON: `error`, `hint` and `blame`.
"""

from __future__ import annotations

import hmac
import json
import logging
import traceback
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from linerate.array.control.openapi import document
from linerate.array.control.service import OWNER, Caller, Service
from linerate.array.control.signing import ANSWER_HEADER, SCHEME, Verifier, answer_signature
from linerate.errors import LinerateError, UserError

_LOG = logging.getLogger("linerate")

BODY_BYTES_MAX = 256 << 10
STATUS_BY_BLAME = {"user": 400, "peer": 502, "host": 503, "us": 500}


def control_app(service: Service, token: str, partners: Mapping[str, str]) -> Starlette:
    """The application; `partners` holds the secrets of partners by name."""
    api = _Api(service, token, Verifier(partners))
    return Starlette(
        routes=[
            Route("/v1/openapi.json", _describe, methods=["GET"]),
            Route("/v1/status", api.status, methods=["GET"]),
            Route("/v1/commands/{verb}", api.command, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _no_such_place},
    )


class _Api:
    """The routes, with what they need."""

    def __init__(self, service: Service, token: str, verifier: Verifier) -> None:
        self._service = service
        self._token = token.encode()
        self._verifier = verifier

    async def status(self, request: Request) -> Response:
        """What the array is and does."""
        return await self._answered(request, lambda caller, body: self._service.status(caller))

    async def command(self, request: Request) -> Response:
        """Carries a command out."""
        verb = request.path_params["verb"]
        return await self._answered(
            request, lambda caller, body: self._service.do(verb, _fields(body), caller)
        )

    async def _answered(self, request: Request, work: Callable[[Caller, bytes], dict[str, Any]]) -> Response:
        body = await _body(request)
        if body is None:
            return _error(413, f"a request has at most {BODY_BYTES_MAX} bytes", "send less")
        proof = request.headers.get("authorization", "")
        given = proof.removeprefix("Bearer ").encode()
        if proof.startswith("Bearer ") and hmac.compare_digest(given, self._token):
            return await run_in_threadpool(_outcome, work, OWNER, body)
        found = self._verifier.check(proof, request.method, request.url.path, body)
        if found is None:
            return _error(401, _UNKNOWN[proof.startswith(SCHEME)], *_WAY_IN[proof.startswith(SCHEME)])
        name, secret, nonce = found
        answer = await run_in_threadpool(_outcome, work, Caller(name), body)
        answer.headers[ANSWER_HEADER] = answer_signature(
            secret, nonce, answer.status_code, bytes(answer.body)
        )
        return answer


_UNKNOWN = {
    False: "the token is missing or is not this array's",
    True: "the partner is unknown, its secret differs, its clock is minutes off, or the request came twice",
}
_WAY_IN = {
    False: ("send `Authorization: Bearer TOKEN`; `linerate array` finds the token by itself",),
    True: ("compare the [[partners]] tables of both arrays: same name, same secret; and both clocks",),
}


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


def _outcome(work: Callable[[Caller, bytes], dict[str, Any]], caller: Caller, body: bytes) -> JSONResponse:
    try:
        return JSONResponse(work(caller, body))
    except LinerateError as error:
        return _error(STATUS_BY_BLAME[error.blame], error.message, error.hint, error.blame)
    except Exception as error:  # whoever asks shall get an answer; the text might hold what was sent
        _LOG.error("control API: %s in %s", type(error).__name__, _place_of(error))
        return _error(
            500, f"{type(error).__name__} in {_place_of(error)}", "this is a defect of Linerate", "us"
        )


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
