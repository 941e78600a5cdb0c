"""A file for /etc/sysctl.d: the settings of the TCP stack, from the next start on."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.host import HostSetting
from linerate.host.linux.sysctl import SysctlLine
from linerate.recommend.configuration import Configuration, RecommendedSetting
from linerate.recommend.form import FormText, commented, evidence_lines, host_settings, not_of_hosts


def sysctl_form(configuration: Configuration, ports: Sequence[str]) -> FormText:
    """The lines of the file. The ports are of no use here."""
    del ports
    lines: list[str] = []
    missing = not_of_hosts(configuration)
    for one, setting in host_settings(configuration):
        if not isinstance(setting.linux, SysctlLine):
            missing[one.name] = _why_not(setting)
    for name, (value, users) in sysctl_lines(configuration).items():
        lines.append("")
        for one, knob in users:
            lines += evidence_lines(one)
            if knob.whole_line and one is users[-1][0]:
                lines += commented(
                    f"{name} has several numbers. The others are those that Linux usually has: compare them with "
                    f"`sysctl {name}` of this host first."
                )
        lines.append(f"{name} = {value}")
    return FormText(lines, missing)


def _why_not(setting: HostSetting) -> str:
    if setting.linux:
        return f"it is no sysctl, but {setting.names.linux} (--as linux)"
    return setting.absent or "it is asked for when a session logs in (--as linux)"


def sysctl_lines(
    configuration: Configuration,
) -> dict[str, tuple[str, list[tuple[RecommendedSetting, SysctlLine]]]]:
    """Sysctl -> its value and the settings that are in it; two settings may be numbers of the same sysctl."""
    found: dict[str, tuple[str, list[tuple[RecommendedSetting, SysctlLine]]]] = {}
    for one, setting in host_settings(configuration):
        if isinstance(knob := setting.linux, SysctlLine):
            line, users = found.get(knob.name, (knob.whole_line, []))
            found[knob.name] = (knob.sysctl_text(one.value, line), [*users, (one, knob)])
    return found
