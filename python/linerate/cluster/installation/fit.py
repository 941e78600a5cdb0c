"""Whether a host can use the compiled packages of this machine: same Python, same kind of CPU, same C library."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import Any

from linerate.errors import HostError

PYTHON_MIN = (3, 11)
BY_PIP = "or install Linerate there by pip and name it with --hosts-python (docs/cluster.md)"


def python_text(version: tuple[int, ...]) -> str:
    """As people write it."""
    return ".".join(map(str, version))


def check_fit(host: str, facts: Mapping[str, Any]) -> None:
    """Raises HostError, naming the host and what to do, if what runs here would not run there."""
    theirs = tuple(facts["python"])
    ours = sys.version_info[:2]
    if theirs < PYTHON_MIN:
        raise HostError(
            f"host {host}: its Python ({facts['executable']}) is {python_text(theirs)}; Linerate needs "
            f"{python_text(PYTHON_MIN)} or later",
            f"install Python {python_text(ours)} there; --python names one that is not on the search path",
        )
    if (facts["system"], facts["machine"]) != (platform.system(), platform.machine()):
        raise HostError(
            f"host {host} is {facts['system']} on {facts['machine']}, this machine {platform.system()} on "
            f"{platform.machine()}: the compiled parts of Linerate do not run there",
            f"call `linerate hosts install` on a machine of that kind, {BY_PIP}",
        )
    if theirs[:2] != ours or facts["cache_tag"] != sys.implementation.cache_tag:
        raise HostError(
            f"host {host} has Python {python_text(theirs)} ({facts['executable']}), and Linerate runs on "
            f"{python_text(ours)} here: compiled packages are made for one of them",
            f"install Python {python_text(ours)} there, name it with --python, {BY_PIP}",
        )
    if facts["libc"] != (libc := platform.libc_ver()[0]):
        raise HostError(
            f"host {host} has the C library {facts['libc'] or 'of another kind'}, this machine {libc}",
            f"call `linerate hosts install` on a machine of that kind, {BY_PIP}",
        )
