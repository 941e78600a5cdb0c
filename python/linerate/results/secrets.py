"""Removes secrets from everything that is written into a run directory.

A run directory is made to be passed around, so CHAP secrets never enter it: values of keys that name a secret
go, and so does the part after `%` in a target URL, wherever the text came from (spec, workload file, command
line, event).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "***"
_SECRET_KEY = re.compile(r"secret|password|passwd", re.IGNORECASE)
# After `%` a secret may hold anything but `@`, blanks and slashes too; after `:` it ends like a host's port would.
_URL_SECRET = re.compile(
    r"""(?P<user>[a-z][a-z0-9+.-]*://[^\s/@%:"']*)(?:%[^@\n"']*|:[^\s/@"']*)@""", re.IGNORECASE
)
_ASSIGNED_SECRET = re.compile(
    r"""(?P<key>\b[\w-]*(?:secret|password|passwd)[\w-]*["']?\s*[=:]\s*)"""
    r"""(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s,)#]+)""",
    re.IGNORECASE,
)


def scrub_text(text: str) -> str:
    """`text` without secrets in URLs (`user%secret@`) and in assignments such as `secret = "..."`."""
    text = _URL_SECRET.sub(rf"\g<user>%{HIDDEN}@", text)
    return _ASSIGNED_SECRET.sub(rf'\g<key>"{HIDDEN}"', text)


def scrub(value: Any) -> Any:
    """A copy of a JSON-like value without secrets.

    A key that names a secret stays, with its value hidden if it had one.
    """
    if isinstance(value, str):
        return _URL_SECRET.sub(rf"\g<user>%{HIDDEN}@", value)
    if isinstance(value, Mapping):
        return {
            str(key): (HIDDEN if item else item) if _SECRET_KEY.search(str(key)) else scrub(item)
            for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [scrub(item) for item in value]
    return value
