"""`linerate schema`: JSON Schemas of the files and lines that Linerate reads and writes, for editors and programs."""

from __future__ import annotations

from enum import StrEnum
from json import dumps
from typing import Annotated

import typer


class Subject(StrEnum):
    """What a schema describes."""

    RUN = "run"
    WORKLOAD = "workload"
    ARRAY = "array"
    CONTROL = "control"
    TOPOLOGY = "topology"
    STUDY = "study"
    EVENTS = "events"
    MANIFEST = "manifest"


def schema(
    subject: Annotated[
        Subject,
        typer.Argument(
            help="run: a RunSpec; workload: a TOML workload file; array: an array file; "
            "control: the OpenAPI document of an array's control API; "
            "topology: of a SAN; study: a study file; "
            "events: the lines of --json; manifest: of a run."
        ),
    ],
) -> None:
    """Print a JSON Schema."""
    typer.echo(dumps(_schema(subject), indent=2))


def _schema(subject: Subject) -> dict[str, object]:
    match subject:
        case Subject.RUN:
            from linerate.workload.schema import run_schema

            return run_schema()
        case Subject.WORKLOAD:
            from linerate.workload.schema import workload_schema

            return workload_schema()
        case Subject.ARRAY:
            from linerate.array import ArrayConfig

            return ArrayConfig.model_json_schema()
        case Subject.CONTROL:
            from linerate.array.control.openapi import document

            return document()
        case Subject.TOPOLOGY:
            from linerate.san import topology_schema

            return topology_schema()
        case Subject.STUDY:
            from linerate.study.file.reader import study_schema

            return study_schema()
        case Subject.EVENTS:
            from linerate.cli.view.events import LINES

            return LINES.json_schema()
        case Subject.MANIFEST:
            from linerate.results import Manifest

            return Manifest.model_json_schema()
