"""The kernel as one network namespace shows it: links, routes, ethtool messages, sysctl and sysfs files.

A `Kernel` is made and used in a thread inside the namespace (`linerate.host.target.inside`);
sockets are opened when they are first needed. What the kernel refuses becomes an `UnavailableError` that says
what to do.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from linerate.host.linux.counters import driver_counters
from linerate.host.linux.ethtool import Ethtool
from linerate.host.linux.knob import DeviceGoneError
from linerate.host.setting import UnavailableError

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # system call numbers, the same on every architecture
_FSCONFIG_CMD_CREATE = 6
_CLOEXEC = 1
_READ = os.O_RDONLY | os.O_CLOEXEC
_LOWER = "lower_"  # of the links in a device's folder in sysfs
_libc = ctypes.CDLL(None, use_errno=True)


class Kernel:
    """Sockets and files of the network namespace of the calling thread; to be closed in the same thread."""

    def __init__(self, devices: tuple[str, ...]) -> None:
        self.devices = devices
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @cached_property
    def routing(self) -> Any:
        """pyroute2's socket for links and routes."""
        return self._open.enter_context(IPRoute())

    @cached_property
    def _ethtool(self) -> Ethtool:
        return self._open.enter_context(Ethtool())

    def link(self, device: str) -> Any:
        """The link message of a device. Raises DeviceGoneError that names the devices there are."""
        with self._judged(device):
            return self.routing.link("get", ifname=device)[0]

    def links(self) -> Any:
        """The link messages of all devices."""
        return self.routing.get_links()

    def set_link(self, device: str, **attributes: int) -> None:
        """Changes attributes of a link (mtu, gso_max_segs)."""
        index = self.link(device)["index"]
        with self._judged(device):
            self.routing.link("set", index=index, **attributes)

    def change_route(self, command: str, attributes: dict[str, Any]) -> None:
        """Appends or deletes a route; one that is there, or gone, already is fine."""
        fine = {"append": errno.EEXIST, "del": errno.ESRCH}[command]
        try:
            self.routing.route(command, **attributes)
        except NetlinkError as error:
            if error.code in (errno.EPERM, errno.EACCES):
                raise _not_permitted() from error
            if error.code != fine:
                what = f"the kernel refused to {command} a route: {os.strerror(error.code)}"
                raise UnavailableError(what) from error

    def ethtool(self, message: str, device: str) -> dict[str, Any]:
        """The answer to an ethtool request; `message` is a name of `linerate.host.linux.ethtool.MESSAGES`."""
        with self._judged(device):
            return self._ethtool.get(message, device)

    def set_ethtool(self, message: str, device: str, attributes: dict[str, Any]) -> None:
        """Sends an ethtool change."""
        with self._judged(device):
            self._ethtool.set(message, device, attributes)

    @contextmanager
    def _judged(self, device: str) -> Iterator[None]:
        """Turns a refusal of the kernel into words."""
        try:
            yield
        except NetlinkError as error:
            if error.code == errno.ENODEV:
                there = ", ".join(link.get_attr("IFLA_IFNAME") for link in self.links())
                raise DeviceGoneError(f"there is no device {device}", f"there is {there}") from error
            if error.code in (errno.EOPNOTSUPP, errno.ENOENT):
                raise UnavailableError(f"the driver of {device} has no such setting") from error
            if error.code in (errno.EPERM, errno.EACCES):
                raise _not_permitted() from error
            reason = os.strerror(error.code)
            raise UnavailableError(f"the driver of {device} refused: {reason}") from error

    def sysctl(self, name: str) -> str:
        """Text of a sysctl, dots in its name. Raises UnavailableError where the kernel or namespace has none."""
        try:
            return _sysctl_path(name).read_text(encoding="ascii").strip()
        except OSError as error:
            raise _file_refusal(f"sysctl {name}", error) from error

    def set_sysctl(self, name: str, text: str) -> None:
        """Writes a sysctl."""
        try:
            _sysctl_path(name).write_text(text, encoding="ascii")
        except OSError as error:
            raise _file_refusal(f"sysctl {name}", error) from error

    def attribute(self, device: str, name: str) -> str:
        """Text of a device's file in sysfs."""
        try:
            with open(self._attribute(device, name, os.O_RDONLY), encoding="ascii") as file:
                return file.read().strip()
        except OSError as error:
            raise _file_refusal(f"{device}/{name}", error) from error

    def set_attribute(self, device: str, name: str, text: str) -> None:
        """Writes a device's file in sysfs."""
        try:
            with open(self._attribute(device, name, os.O_WRONLY), "w", encoding="ascii") as file:
                file.write(text)
        except OSError as error:
            raise _file_refusal(f"{device}/{name}", error) from error

    def lower_devices(self, device: str) -> list[str]:
        """The devices below a VLAN, a bond or a bridge, sorted; none below an adapter."""
        try:
            folder = self._attribute(device, "", os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise _file_refusal(device, error) from error
        try:
            return sorted(name.removeprefix(_LOWER) for name in os.listdir(folder) if name.startswith(_LOWER))
        finally:
            os.close(folder)

    def counters(self, device: str) -> dict[str, int]:
        """The driver's own counters by its names; none where the driver has none."""
        try:
            return driver_counters(device)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EPERM):
                return {}
            raise UnavailableError(f"the counters of {device}: {error.strerror}") from error

    def _attribute(self, device: str, name: str, flags: int) -> int:
        """Opens a device's file, after a look whether this sysfs shows the same device as netlink."""
        link = self.link(device)
        try:
            with open(
                os.open(f"class/net/{device}/ifindex", _READ, dir_fd=self._sysfs), encoding="ascii"
            ) as file:
                same = int(file.read()) == link["index"]
            with open(
                os.open(f"class/net/{device}/address", _READ, dir_fd=self._sysfs), encoding="ascii"
            ) as file:
                same = same and file.read().strip() == link.get_attr("IFLA_ADDRESS")
        except OSError:
            same = False
        if not same:
            raise UnavailableError(f"/sys does not show {device} to us", "be root")
        return os.open(f"class/net/{device}/{name}", flags | os.O_CLOEXEC, dir_fd=self._sysfs)

    @cached_property
    def _sysfs(self) -> int:
        """A sysfs of this namespace's own, because /sys shows the devices of the namespace that mounted it.

        It hangs nowhere and goes with its descriptor. Without the right to mount, /sys has to do.
        """
        mounted = _detached_sysfs()
        found = mounted if mounted is not None else os.open("/sys", _READ)
        self._open.callback(os.close, found)
        return found


def _not_permitted() -> UnavailableError:
    return UnavailableError("not permitted", "be root, or work in a lab of your own")


def _detached_sysfs() -> int | None:
    context = _libc.syscall(_FSOPEN, b"sysfs", _CLOEXEC)
    if context < 0:
        return None
    try:
        if _libc.syscall(_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0) < 0:
            return None
        mounted = int(_libc.syscall(_FSMOUNT, context, _CLOEXEC, 0))
        return mounted if mounted >= 0 else None
    finally:
        os.close(context)


def _sysctl_path(name: str) -> Path:
    return Path("/proc/sys", *name.split("."))


def _file_refusal(what: str, error: OSError) -> UnavailableError:
    match error.errno:
        case errno.ENOENT:
            return UnavailableError(f"this kernel has no {what} in a network namespace")
        case errno.EPERM | errno.EACCES | errno.EROFS:
            return UnavailableError(
                f"not permitted to change {what}", "be root outside of any user namespace"
            )
        case _:
            return UnavailableError(f"{what}: {error.strerror}")
