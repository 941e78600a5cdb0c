"""Where a file is that a command names: the parameter file of sqlio, the profile of diskspd.

The command was written for Windows: its names ignore case, and a path with a drive is none of this machine. Such a file
is looked for beside the script.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PureWindowsPath

from linerate.workload.problems import Problems, SourceLocation

_ON_DRIVE = re.compile(r"[a-z]:|[\\/]{2}", re.IGNORECASE)
_ENTRIES_MAX = 100_000


def file_of(place: SourceLocation, name: str, problems: Problems) -> Path:
    """The path of the file that a command at `place` names. It need not exist; a notice says which other file it is."""
    folder = Path(place.path).parent if place.line else Path()
    written = folder / name.replace("\\", "/")
    if os.path.exists(written):
        return written
    wanted = folder / PureWindowsPath(name).name if _ON_DRIVE.match(name) else written
    found = wanted if os.path.exists(wanted) else _in_other_case(wanted)
    if found is None:
        return wanted
    if wanted != written:
        problems.notice(place, f"{name} is read from {found}: a path of Windows")
    return found


def _in_other_case(path: Path) -> Path | None:
    """The file of this name in other letters; None if there is none, or more than one."""
    try:
        entries = list(path.parent.iterdir())
    except OSError:
        return None
    name = path.name.lower()
    found = [one for one in entries[:_ENTRIES_MAX] if one.name.lower() == name]
    return found[0] if len(found) == 1 else None
