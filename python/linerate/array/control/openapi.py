"""The OpenAPI document of the control API, made from the models of its commands and of its status."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from linerate.array.base import Frozen
from linerate.array.control.commands import COMMANDS, ArrayCommand
from linerate.array.control.report import ArrayReport
from linerate.array.figures.openmetrics import CONTENT_TYPE
from linerate.errors import Blame


class ErrorReply(Frozen):
    """Why something was not done."""

    error: str
    hint: str
    """What to do about it."""
    blame: Blame
    """Whose fault it is: the caller's, another array's, the host's, or the program's."""


@cache
def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    replies = {command.reply for command in COMMANDS.values()}
    models: list[type[BaseModel]] = [
        *COMMANDS.values(),
        *sorted(replies, key=lambda reply: reply.__name__),
        ArrayReport,
        ErrorReply,
    ]
    places, schema = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, Any] = {
        "/v1/status": {
            "get": _operation("status", "Everything about the array.", places[ArrayReport, "validation"])
        }
    }
    paths["/metrics"] = {"get": _operation("metrics", "Its counters and states for Prometheus.", {})}
    text = {CONTENT_TYPE: {"schema": {"type": "string"}}}
    paths["/metrics"]["get"]["responses"]["200"]["content"] = text
    for verb, command in COMMANDS.items():
        operation = _operation(verb, _first_line(command), places[command.reply, "validation"])
        body = {"required": True, "content": _content(places[command, "validation"])}
        paths[f"/v1/commands/{verb}"] = {"post": operation | {"requestBody": body}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Linerate array",
            "version": "1",
            "description": "Looks at an array that serves, and manages it.",
        },
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": schema["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(name: str, summary: str, reply: dict[str, Any]) -> dict[str, Any]:
    trouble = {
        "description": "Not done, and why.",
        "content": _content({"$ref": "#/components/schemas/ErrorReply"}),
    }
    return {
        "operationId": name,
        "summary": summary,
        "responses": {"200": {"description": "Done.", "content": _content(reply)}, "default": trouble},
    }


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _first_line(command: type[ArrayCommand]) -> str:
    return (command.__doc__ or "").strip().split("\n")[0]
