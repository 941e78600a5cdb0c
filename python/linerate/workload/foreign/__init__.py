"""Which tool a workload file is for, from its first bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from linerate.errors import UserError
from linerate.workload.diskspd import is_profile, is_script
from linerate.workload.trace.lines import GZIP, head_of
from linerate.workload.trace.recognise import form_of_head

FileKind = Literal["diskspd", "fio", "iometer", "vdbench", "iolog", "blkparse", "snia"]
_HEAD_BYTES = 65_536
_HINT = (
    "write a vdbench file (docs/vdbench.md), a job file of fio (docs/fio.md), a configuration of Iometer "
    "(docs/iometer.md), a script with commands of diskspd or sqlio, a profile of diskspd (docs/diskspd.md), "
    "a trace (docs/trace.md) or a TOML file (docs/workload.md)"
)
_IOMETER = re.compile(
    rb"(\xef\xbb\xbf)?\s*(Version \d+\.\d+\.\d+\s|'TEST SETUP|'ACCESS SPECIFICATIONS)", re.IGNORECASE
)
_FOREIGN = (
    (
        re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)?<Results\b", re.DOTALL),
        "an XML result of diskspd",
    ),
    (re.compile(rb"\s*<"), "an XML or HTML file"),
    (re.compile(rb"\s*\{"), "a JSON file"),
    (re.compile(rb"#!"), "a script"),
    (re.compile(rb"\x7fELF|\x1f\x8b|PK\x03\x04|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd"), "a program or an archive"),
)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SCRIPTS = (".bat", ".cmd", ".ps1")
_COMMENTS = ("#", ";", "*", "/")


def kind_of_file(path: Path) -> FileKind:
    """Which reader takes a file.

    diskspd: a script of Windows, a file with a command of diskspd or sqlio, or a profile of diskspd (XML). iometer: a
    file that begins as a configuration of Iometer, or whose name ends with .icf. fio: one whose first line that is no
    comment is a section, or whose name ends with .fio or .job. iolog, blkparse, snia: a trace of this form, also
    compressed with gzip. vdbench: all others.

    Raises UserError for a file of another tool, named.
    """
    try:
        head = head_of(path, _HEAD_BYTES)
    except OSError:
        return "vdbench"  # reported when it is read
    if (form := form_of_head(head)) is not None:
        return form
    if path.suffix.lower() == ".gz" and not head.startswith(GZIP):
        hint = "traces are read from .gz files: fio's iolog, blkparse's text, SNIA's CSV (docs/trace.md)"
        raise UserError(f"{path}: the archive holds no trace", hint)
    if path.suffix.lower() == ".icf" or _IOMETER.match(head):
        return "iometer"
    if path.suffix.lower() in _SCRIPTS or is_script(head) or is_profile(head):
        return "diskspd"
    for pattern, what in _FOREIGN:
        if pattern.match(head):
            raise UserError(f"{path}: {what}, which Linerate does not read", _HINT)
    if b"\0" in head and not head.startswith(_UTF_16):
        raise UserError(f"{path}: a binary file, which is no workload", _HINT)
    if path.suffix.lower() in (".fio", ".job"):
        return "fio"
    text = head.decode("utf-8-sig", "replace")
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith(_COMMENTS)), "")
    return "fio" if re.match(r"\[[^\]]+\]\s*([#;].*)?$", first) else "vdbench"


def is_trace(path: Path) -> bool:
    """Whether a file is a trace, plain or compressed."""
    try:
        return path.is_file() and form_of_head(head_of(path, _HEAD_BYTES)) is not None
    except OSError:
        return False
