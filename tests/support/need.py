"""Tools and rights that a test cannot do without: a missing one skips the test, and fails it where it must be there.

`.ci/run` installs all of `PACKAGES` and sets LINERATE_CI=1; there a skip would hide a test that could have run.
"""

from __future__ import annotations

import functools
import importlib
import os
import shutil
import subprocess
from collections.abc import Callable
from types import ModuleType
from typing import NoReturn

import pytest

IN_CI = os.environ.get("LINERATE_CI", "") not in ("", "0")

PACKAGES: dict[str, str] = {
    "chromium": "chromium",
    "e2fsck": "e2fsprogs",
    "ethtool": "ethtool",
    "fio": "fio",
    "fio_jsonplus_clat2csv": "fio",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "iscsi-inq": "libiscsi-bin",
    "iscsi-ls": "libiscsi-bin",
    "iscsi-perf": "libiscsi-bin",
    "iscsi-readcapacity16": "libiscsi-bin",
    "iscsi-test-cu": "libiscsi-bin",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mkswap": "util-linux",
    "mount": "mount",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "pdbedit": "samba",
    "pvcreate": "lvm2",
    "qemu-img": "qemu-utils",
    "qemu-io": "qemu-utils",
    "setpriv": "util-linux",
    "sfdisk": "fdisk",
    "smbclient": "smbclient",
    "smbcontrol": "samba",
    "smbd": "samba",
    "swapon": "mount",
    "sysctl": "procps",
    "systemd-analyze": "systemd",
    "tgtadm": "tgt",
    "tgtd": "tgt",
    "unshare": "util-linux",
    "vhdiinfo": "libvhdi-utils",
}
"""Programs that tests run, with the Debian package of each."""


def _qemu_knows_iscsi(program: str) -> bool:
    """Its driver for iSCSI is a module in a package of its own; no portal answers at the address of the probe."""
    words = ["info"] if program.endswith("qemu-img") else ["-c", "quit"]
    command = [program, *words, "iscsi://127.0.0.1:1/iqn.2026-11.lab.linerate:none/0"]
    probe = subprocess.run(command, capture_output=True, text=True, check=False)
    return "Unknown protocol" not in probe.stderr


PARTS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "qemu-img": ("qemu-block-extra", _qemu_knows_iscsi),
    "qemu-io": ("qemu-block-extra", _qemu_knows_iscsi),
}
"""Programs of which a part is in another package: that package, and whether the part is there."""


def tool(name: str) -> str:
    """Path of a program of `PACKAGES` that is there in whole."""
    package = PACKAGES.get(name, f"none is known for {name}")
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        missing(f"{name} is not installed (Debian: {package})")
    if name in PARTS and not _is_whole(name, found):
        missing(f"{name} is there without a part of it (Debian: {PARTS[name][0]})")
    return found


@functools.cache
def _is_whole(name: str, program: str) -> bool:
    _, is_there = PARTS[name]
    return is_there(program)


OPTIONAL: dict[str, str] = {
    "ansible-playbook": "PyPI: ansible-core",
    "multipath": "Debian: multipath-tools",
    "tree_sitter_powershell": "PyPI: tree-sitter-powershell and tree-sitter",
    "udevadm": "Debian: udev",
}
"""Programs and modules that `.ci/run` does not install: their packages begin services, or are large."""


def optional_tool(name: str) -> str:
    """Path of a program of `OPTIONAL`; skips where it is missing, also in CI."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        pytest.skip(f"{name} is not installed ({OPTIONAL[name]})")
    return found


def optional_module(name: str) -> ModuleType:
    """A Python module of `OPTIONAL`; skips where it is missing, also in CI."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed ({OPTIONAL[name]})")


def unshare(*options: str) -> list[str]:
    """Begins a command that runs in a user namespace with root's rights, and in others that the options name."""
    command = [tool("unshare"), "--user", "--map-root-user", *options]
    probe = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        missing(f"no namespace for this user: {probe.stderr.strip()}")
    return command


def missing(reason: str) -> NoReturn:
    """Skips, or fails where everything must be there."""
    if IN_CI:
        pytest.fail(f"{reason}, but LINERATE_CI is set", pytrace=False)
    pytest.skip(reason)
