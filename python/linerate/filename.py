"""Names that users give, as names of files: the only place where the one becomes the other.

A file name made here has ASCII letters, digits, `.`, `_` and `-` only, does not begin with a dot or a dash, is neither
empty nor long, and so names a file in the folder it is put in, wherever the name came from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LENGTH_MAX = 80
"""Leaves room for a date before it and an ending behind it: file systems take 255 bytes."""
_UNNAMED = "unnamed"
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")


def file_name(name: str) -> str:
    """A file name that reads like the name. Names that differ may come to one; see `file_names`."""
    return _cut(_STRANGE.sub("-", name).strip("-.") or _UNNAMED, name)


def file_names(names: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """A file name for each name, no two alike, not even where capitals count for nothing, and none that is reserved."""
    taken = {one.lower() for one in reserved}
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        file = file_name(name)
        if file.lower() in taken:
            file = _marked(file, name)
        taken.add(file.lower())
        found[name] = file
    return found


def slug(name: str) -> str:
    """The same in lower case, with letters and digits only and dashes between them."""
    return _cut(_NOT_IN_SLUGS.sub("-", name.lower()).strip("-") or _UNNAMED, name)


def _cut(file: str, name: str) -> str:
    return file if len(file) <= LENGTH_MAX else _marked(file, name)


def _marked(file: str, name: str) -> str:
    """Told apart from others that read alike by a digest of the name itself."""
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{file[: LENGTH_MAX - len(mark) - 1].rstrip('-.')}-{mark}"
