"""The man page, written from the command line's own help: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from linerate.cli.app import application

PAGE = Path(__file__).resolve().parents[2] / "packaging/wheel/data/share/man/man1/linerate.1"

_HEAD = """.\\" Written by `make docs` from the help texts of the verbs.
.TH LINERATE 1 "" "Linerate" "User Commands"
.SH NAME
linerate \\- measure an IP storage network
.SH SYNOPSIS
.B linerate
.I VERB
[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]
"""
_TAIL = """.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
A run failed, or a result is not to be trusted.
.TP
.B 2
A mistake in the command line or in a file that it names.
.TP
.B 3
A condition of \\fBcompare \\-\\-fail\\-if\\fR holds.
.TP
.B 130
Interrupted.
.SH ENVIRONMENT
.TP
.B LINERATE_DEBUG
1 shows the traceback of a failure.
.SH SEE ALSO
.BR fio (1),
.BR iscsiadm (8),
.BR multipath.conf (5)
"""


def page() -> str:
    """The whole page as roff."""
    root = typer.main.get_command(application())
    lines = [".SH DESCRIPTION", *_paragraphs(root.help or ""), ".SH VERBS"]
    for name, command in _verbs(root, ""):
        lines += _verb(name, command)
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _verbs(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _verbs(command, f"{prefix}{name} ")
        elif not command.hidden:
            yield f"{prefix}{name}", command


def _verb(name: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=f"linerate {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    yield f'.SS "{_escaped(f"linerate {name} {usage}".strip())}"'
    yield from _paragraphs(command.help or "")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield ".TP"
            yield f".B {_escaped(record[0])}"
            yield _escaped(" ".join(record[1].split())) or "\\&"


def _paragraphs(text: str) -> Iterator[str]:
    for index, paragraph in enumerate(text.replace("\b", "").split("\n\n")):
        if index:
            yield ".PP"
        yield _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    """Text for roff: no line begins with a control character, and hyphens are copied as they are."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    PAGE.write_text(page())
