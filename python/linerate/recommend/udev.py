"""Rules for udev: settings of adapters, whenever a port appears."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.errors import UserError
from linerate.host import HostSetting
from linerate.recommend.configuration import Configuration, RecommendedSetting
from linerate.recommend.form import FormText, checked_ports, evidence_lines, host_settings, not_of_hosts

_DEVICE = "DEVICE"


def udev_form(configuration: Configuration, ports: Sequence[str]) -> FormText:
    """The rules. Raises UserError without ports: a rule for every network device would be wrong."""
    settings, missing = adapter_settings(configuration)
    if settings and not ports:
        raise UserError("udev rules need the ports to the SAN", "name them: --device eth2 --device eth3")
    match = "|".join(checked_ports(ports))
    lines: list[str] = []
    for one, setting in settings:
        lines += ["", *evidence_lines(one), udev_rule(one, setting, match)]
    return FormText(lines, missing)


def adapter_settings(
    configuration: Configuration,
) -> tuple[list[tuple[RecommendedSetting, HostSetting]], dict[str, str]]:
    """The settings that a rule can hold, and why the others cannot be in one."""
    missing = not_of_hosts(configuration)
    found: list[tuple[RecommendedSetting, HostSetting]] = []
    for one, setting in host_settings(configuration):
        if setting.where != "nic":
            other = {"stack": "the TCP stack (--as sysctl)", "route": "the routes (--as linux)"}
            missing[one.name] = f"it is a setting of {other.get(setting.where, 'the session (--as linux)')}"
        elif setting.linux is None:
            missing[one.name] = setting.absent
        else:
            found.append((one, setting))
    return found, missing


def udev_rule(one: RecommendedSetting, setting: HostSetting, match: str) -> str:
    """The rule of a setting. `match` has the names of the ports, with | between them."""
    assert setting.linux is not None
    command = setting.linux.shell_write(_DEVICE, one.value)
    # udev itself replaces $ and %; %k is the kernel's name of the device.
    escaped = command.replace("%", "%%").replace("$", "$$").replace(_DEVICE, "%k")
    condition = f'ACTION=="add", SUBSYSTEM=="net", KERNEL=="{match}"'
    return f"{condition}, RUN+=\"/bin/sh -c '{escaped}'\""
