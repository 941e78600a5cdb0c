"""Tools and rights that a test cannot do without: missing ones skip the test, and fail it where they must be there.

`.ci/run` installs every tool and sets LINERATE_CI=1; there a skip would hide a test that could have run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import NoReturn

import pytest

IN_CI = os.environ.get("LINERATE_CI", "") not in ("", "0")


def tool(name: str, package: str) -> str:
    """Path of a program of a Debian package."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return found or missing(f"{name} is not installed (Debian: {package})")


def unshare(*options: str) -> list[str]:
    """Begins a command that runs in a user namespace with root's rights, and in others that the options name."""
    command = [tool("unshare", "util-linux"), "--user", "--map-root-user", *options]
    probe = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        missing(f"no namespace for this user: {probe.stderr.strip()}")
    return command


def missing(reason: str) -> NoReturn:
    """Skips, or fails where nothing may be missing."""
    if IN_CI:
        pytest.fail(f"{reason}, but LINERATE_CI is set", pytrace=False)
    pytest.skip(reason)
