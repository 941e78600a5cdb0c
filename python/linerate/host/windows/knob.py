"""The ways in which Windows keeps a setting, each as lines of PowerShell: save, apply, verify, undo.

The generated script defines `$Ports` (names of the SAN's adapters) and `$Saved` (a table of what was there).
In undo, a value that was not there before is removed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from linerate.host.setting import UnavailableError
from linerate.setting import MAX, Value

Lines = list[str]
PROFILE = "DatacenterCustom"
"""The TCP profile that may be changed and that the filter for the iSCSI port names."""


class WindowsKnob(Protocol):
    """Writes PowerShell for one setting. `apply` raises UnavailableError for a value that Windows does not
    have."""

    def save(self) -> Lines:
        """Lines that put the present values into `$Saved`."""

    def apply(self, value: Value) -> Lines:
        """Lines that set the value."""

    def verify(self) -> Lines:
        """Lines that show its value."""

    def undo(self) -> Lines:
        """Lines that put back what `save` kept."""


def each_port(*lines: str) -> Lines:
    """The lines for every adapter of the SAN."""
    return ["foreach ($Port in $Ports) {", *(f"    {line}" for line in lines), "}"]


@dataclass(frozen=True, slots=True)
class AdvancedProperty:
    """Standardized keywords of the adapter's driver (the names that begin with a star).

    The number in the registry is what `words` says, else the value plus `add`, else for `switch` whether it
    is more than nothing. max is what the driver says.
    """

    keywords: tuple[str, ...]
    words: tuple[tuple[Value, int], ...] = ()
    add: int = 0
    switch: bool = False

    def save(self) -> Lines:
        """The drivers' present numbers."""
        return each_port(
            *(f'$Saved["property|$Port|{key}"] = {_get(key)}.RegistryValue' for key in self.keywords)
        )

    def apply(self, value: Value) -> Lines:
        """Sets the number, and lets the driver start anew."""
        return each_port(*(f"{_set(key)} -RegistryValue {self._number(key, value)}" for key in self.keywords))

    def verify(self) -> Lines:
        """Name and shown value."""
        return each_port(
            *(f"{_get(key)} | Format-Table 'Name', 'DisplayName', 'DisplayValue'" for key in self.keywords)
        )

    def undo(self) -> Lines:
        """Sets the numbers that were there."""
        return each_port(
            *(f'{_set(key)} -RegistryValue $Saved["property|$Port|{key}"]' for key in self.keywords)
        )

    def _number(self, keyword: str, value: Value) -> str:
        if self.switch:
            return str(int(bool(value)))
        if value == MAX:
            return f"{_get(keyword)}.NumericParameterMaxValue"
        return str(dict(self.words)[value] if self.words else int(value) + self.add)


def _get(keyword: str) -> str:
    return f"(Get-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '{keyword}')"


def _set(keyword: str) -> str:
    return f"Set-NetAdapterAdvancedProperty -Name $Port -RegistryKeyword '{keyword}'"


@dataclass(frozen=True, slots=True)
class TcpSetting:
    """A parameter of the TCP profile that a filter gives to connections to the iSCSI port.

    `words` are Windows' words; a number is scaled, for a parameter in another unit. `shown` is the
    parameter's name in the profile, where it differs.
    """

    parameter: str
    words: tuple[tuple[Value, str], ...] = ()
    scale: float = 1.0
    shown: str = ""

    def save(self) -> Lines:
        """The profile's present value."""
        return [f"{self._saved} = [string](Get-NetTCPSetting -SettingName {PROFILE}).{self._shown}"]

    def apply(self, value: Value) -> Lines:
        """Sets the profile's parameter."""
        return [f"Set-NetTCPSetting -SettingName {PROFILE} -{self.parameter} {self._word(value)}"]

    def verify(self) -> Lines:
        """The parameter."""
        return [f"Get-NetTCPSetting -SettingName {PROFILE} | Format-Table 'SettingName', '{self._shown}'"]

    def undo(self) -> Lines:
        """Sets what was there."""
        return [f"Set-NetTCPSetting -SettingName {PROFILE} -{self.parameter} {self._saved}"]

    @property
    def _shown(self) -> str:
        return self.shown or self.parameter

    @property
    def _saved(self) -> str:
        return f"$Saved['tcp|{self.parameter}']"

    def _word(self, value: Value) -> str:
        if not self.words:
            return f"{int(value) * self.scale:g}"
        words = dict(self.words)
        if value not in words:
            known = ", ".join(words.values())
            raise UnavailableError(f"Windows has no such {self.parameter}", f"it has {known}")
        return words[value]


@dataclass(frozen=True, slots=True)
class Offload:
    """A switch of the whole host's stack that goes with an adapter's property."""

    parameter: str
    adapter: AdvancedProperty

    def save(self) -> Lines:
        """Both present values."""
        return [
            f"$Saved['offload|{self.parameter}'] = [string](Get-NetOffloadGlobalSetting).{self.parameter}",
            *self.adapter.save(),
        ]

    def apply(self, value: Value) -> Lines:
        """Sets both: either alone has no effect."""
        word = "Enabled" if value else "Disabled"
        return [f"Set-NetOffloadGlobalSetting -{self.parameter} {word}", *self.adapter.apply(value)]

    def verify(self) -> Lines:
        """Both."""
        return [f"Get-NetOffloadGlobalSetting | Format-List {self.parameter}", *self.adapter.verify()]

    def undo(self) -> Lines:
        """Both."""
        return [
            *self.adapter.undo(),
            f"Set-NetOffloadGlobalSetting -{self.parameter} $Saved['offload|{self.parameter}']",
        ]


@dataclass(frozen=True, slots=True)
class RssProfile:
    """The load balancing profile of RSS."""

    words: tuple[tuple[str, str], ...]

    def save(self) -> Lines:
        """Each adapter's profile."""
        return each_port('$Saved["rss|$Port"] = [string](Get-NetAdapterRss -Name $Port).Profile')

    def apply(self, value: Value) -> Lines:
        """Sets the profile."""
        return each_port(f"Set-NetAdapterRss -Name $Port -Profile {dict(self.words)[str(value)]}")

    def verify(self) -> Lines:
        """Each adapter's profile."""
        return each_port("Get-NetAdapterRss -Name $Port | Format-Table 'Name', 'Profile'")

    def undo(self) -> Lines:
        """Sets the profile that was there."""
        return each_port('Set-NetAdapterRss -Name $Port -Profile $Saved["rss|$Port"]')


@dataclass(frozen=True, slots=True)
class InterfaceValue:
    """A number in the registry for each adapter's IP interface: 1 where the setting is off, absent where it
    is on.

    Connections that are made after a restart follow it.
    """

    name: str

    def save(self) -> Lines:
        """The number, or nothing where there is none."""
        return each_port(f"{self._saved} = (Get-ItemProperty -Path (Get-InterfaceKey $Port)).{self.name}")

    def apply(self, value: Value) -> Lines:
        """Sets or removes the number."""
        return each_port(_remove(self.name) if value else _keep(self.name, "1"))

    def verify(self) -> Lines:
        """The number."""
        return each_port(f"Get-ItemProperty -Path (Get-InterfaceKey $Port) | Format-List {self.name}")

    def undo(self) -> Lines:
        """Sets or removes it, as it was."""
        keep, remove = _keep(self.name, self._saved), _remove(self.name)
        return each_port(f"if ($null -ne {self._saved}) {{ {keep} }} else {{ {remove} }}")

    @property
    def _saved(self) -> str:
        return f'$Saved["interface|$Port|{self.name}"]'


def _keep(name: str, number: str) -> str:
    return f"Set-ItemProperty -Path (Get-InterfaceKey $Port) -Name {name} -Type DWord -Value {number}"


def _remove(name: str) -> str:
    return f"Remove-ItemProperty -Path (Get-InterfaceKey $Port) -Name {name} -ErrorAction SilentlyContinue"


@dataclass(frozen=True, slots=True)
class Initiator:
    """A number of the Microsoft iSCSI initiator's adapter; sessions follow it after the service starts anew."""

    name: str

    def save(self) -> Lines:
        """The number."""
        return [f"$Saved['initiator|{self.name}'] = (Get-ItemProperty -Path (Get-InitiatorKey)).{self.name}"]

    def apply(self, value: Value) -> Lines:
        """Sets the number."""
        return [
            f"Set-ItemProperty -Path (Get-InitiatorKey) -Name {self.name} -Type DWord -Value {int(value)}"
        ]

    def verify(self) -> Lines:
        """The number."""
        return [f"Get-ItemProperty -Path (Get-InitiatorKey) | Format-List {self.name}"]

    def undo(self) -> Lines:
        """Sets the number that was there."""
        saved = f"$Saved['initiator|{self.name}']"
        return [f"Set-ItemProperty -Path (Get-InitiatorKey) -Name {self.name} -Type DWord -Value {saved}"]
