"""The PowerShell scripts of a set of values: one that saves and applies, one that undoes, one that does both.

All are meant to be read before an administrator runs them. The first writes what it found to a file beside
itself; the second needs nothing else. TCP profiles reach iSCSI through a transport filter for port 3260,
which the first script adds when it is missing and the second removes if it was added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from linerate.host.catalogue import named
from linerate.host.device_setting import Refusal
from linerate.host.setting import HostSetting, UnavailableError
from linerate.host.windows.knob import PROFILE, Initiator, InterfaceValue, Lines, TcpSetting, WindowsKnob
from linerate.setting import Value

Settings = Sequence[tuple[HostSetting, WindowsKnob]]

_SAVED_FILE = "linerate-saved.xml"
_ISCSI_PORT = 3260
_INTERFACES = r"HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
_STORAGE_CLASS = r"HKLM:\SYSTEM\CurrentControlSet\Control\Class\{4D36E97B-E325-11CE-BFC1-08002BE10318}"

_INTERFACE_KEY = [
    "function Get-InterfaceKey($Port) {",
    f"    '{_INTERFACES}\\' + (Get-NetAdapter -Name $Port).InterfaceGuid",
    "}",
]
_INITIATOR_KEY = [
    "function Get-InitiatorKey {",
    f"    Get-ChildItem '{_STORAGE_CLASS}' -ErrorAction SilentlyContinue |",
    "        Where-Object { $_.GetValue('DriverDesc') -eq 'Microsoft iSCSI Initiator' } |",
    "        ForEach-Object { Join-Path $_.PSPath 'Parameters' }",
    "}",
]
_RANGE = f"-LocalPortStart 0 -LocalPortEnd 65535 -RemotePortStart {_ISCSI_PORT} -RemotePortEnd {_ISCSI_PORT}"
_FIND_FILTER = [
    f"$Filter = Get-NetTransportFilter | Where-Object {{ $_.SettingName -eq '{PROFILE}' -and",
    f"    $_.RemotePortStart -eq {_ISCSI_PORT} -and $_.RemotePortEnd -eq {_ISCSI_PORT} }}",
]


def apply_script(values: Mapping[str, Value], ports: Iterable[str]) -> str:
    """A script that saves what is there, sets checked values and shows them. What Windows lacks is a comment."""
    settings = _available(values)
    lines = _head(ports, settings, "Saves the present values, sets new ones and shows them.")
    lines += [f"# {refusal}" for refusal in windows_refusals(values)]
    return "\n".join([*lines, *_apply(values, settings)]) + "\n"


def undo_script(values: Mapping[str, Value], ports: Iterable[str]) -> str:
    """A script that puts back what the first one saved, the last setting first."""
    settings = _available(values)
    lines = _head(ports, settings, "Puts back what was saved before the change.")
    return "\n".join([*lines, *_undo(settings)]) + "\n"


def script_with_undo(values: Mapping[str, Value], ports: Iterable[str], saved_file: str) -> str:
    """Both as one script, which undoes with -Undo. Before it changes anything it stops where no port is named."""
    settings = _available(values)
    purpose = "Saves the present values, sets new ones and shows them; with -Undo it puts them back."
    lines = ["param([switch]$Undo)", *_head(ports, settings, purpose, saved_file)]
    apply = _apply(values, settings)
    if any("$Ports" in line for line in apply):
        lines.append("if (-not $Ports) { throw 'name the ports to the SAN in $Ports, above' }")
    lines += ["if ($Undo) {", *(f"    {line}".rstrip() for line in [*_undo(settings), "return"]), "}", ""]
    return "\n".join([*lines, *apply]) + "\n"


def _apply(values: Mapping[str, Value], settings: Settings) -> Lines:
    lines = ['if (Test-Path $SavedFile) { throw "$SavedFile exists: undo the earlier change first" }', ""]
    lines += ["$Saved = @{}"]
    for _, knob in settings:
        lines += knob.save()
    if _uses_profile(settings):
        lines += [*_FIND_FILTER, "$Saved['filter'] = [bool]$Filter"]
    lines += ["$Saved | Export-Clixml -Path $SavedFile"]
    if _uses_profile(settings):
        lines += ["", "# TCP connections to an iSCSI port follow the profile"]
        lines += [f"if (-not $Filter) {{ New-NetTransportFilter -SettingName {PROFILE} {_RANGE} }}"]
    for setting, knob in settings:
        value = values[setting.name]
        lines += ["", f"# {setting.title}: {setting.name} = {setting.text(value)}", *knob.apply(value)]
    lines += ["", "# The values now"]
    for _, knob in settings:
        lines += knob.verify()
    return lines


def _undo(settings: Settings) -> Lines:
    lines = ["$Saved = Import-Clixml -Path $SavedFile"]
    for setting, knob in reversed(settings):
        lines += ["", f"# {setting.title}", *knob.undo()]
    if _uses_profile(settings):
        remove = f"Remove-NetTransportFilter -SettingName {PROFILE} {_RANGE} -Confirm:$false"
        lines += ["", f"if (-not $Saved['filter']) {{ {remove} }}"]
    return [*lines, "", "Remove-Item -Path $SavedFile"]


def windows_refusals(values: Mapping[str, Value]) -> list[Refusal]:
    """Settings and values that Windows does not have, or that no script can set."""
    refused = []
    for name, value in values.items():
        setting = named(name)
        if setting.windows is None:
            why = (
                f"given elsewhere: {setting.names.windows}"
                if setting.names.windows
                else "Windows has no such setting"
            )
            refused.append(Refusal(name, "", why))
            continue
        try:
            setting.windows.apply(value)
        except UnavailableError as error:
            refused.append(Refusal(name, "", f"{error.message} ({error.hint})"))
    return refused


def _available(values: Mapping[str, Value]) -> list[tuple[HostSetting, WindowsKnob]]:
    refused = {refusal.setting for refusal in windows_refusals(values)}
    settings = [named(name) for name in values if name not in refused]
    return [(setting, setting.windows) for setting in settings if setting.windows is not None]


def _uses_profile(settings: Settings) -> bool:
    return any(isinstance(knob, TcpSetting) for _, knob in settings)


def _head(ports: Iterable[str], settings: Settings, purpose: str, saved_file: str = _SAVED_FILE) -> Lines:
    """What every script begins with; helpers only where they are used."""
    names = ", ".join(f"'{_quoted(port)}'" for port in ports)
    lines = [
        f"# {purpose} Run as administrator, on the host itself.",
        "#requires -RunAsAdministrator",
        "$ErrorActionPreference = 'Stop'",
        f"$Ports = @({names})",
        f"$SavedFile = Join-Path $PSScriptRoot '{_quoted(saved_file)}'",
    ]
    kinds = {type(knob) for _, knob in settings}
    lines += _INTERFACE_KEY if InterfaceValue in kinds else []
    lines += _INITIATOR_KEY if Initiator in kinds else []
    return lines


def _quoted(text: str) -> str:
    return text.replace("'", "''")
