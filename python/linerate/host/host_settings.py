"""Holds settings of one host, and moves it from one set of values to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from linerate.errors import HostError
from linerate.host.change import apply, read
from linerate.host.journal import HostJournal
from linerate.host.target import HostTarget
from linerate.host.undo import restore
from linerate.setting import Value

Settings = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class SetUp:
    """The result for the settings that were asked for."""

    readback: Mapping[str, Value | None]
    """Values as read back after they were written; None where a value cannot be read."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Setting -> why this host refused it. The others are in force."""


class HostSettings:
    """Settings in force on a host. The journal has the values to put back; this object has the values of now."""

    def __init__(self, target: HostTarget, journal: HostJournal) -> None:
        self._target = target
        self._journal = journal
        self._asked: Settings = {}
        self._done = SetUp({})

    def hold(self, settings: Settings) -> SetUp:
        """Puts exactly these settings in force; those that the host cannot have are refused.

        Only values that differ are written: cases mostly differ in one setting, and some adapters lose their link
        at every change. Raises HostError when a setting that is no longer asked for cannot be put back.
        """
        if self._asked.keys() - settings.keys():
            self.restore()
        differs = {
            name: value
            for name, value in settings.items()
            if name not in self._asked or self._asked[name] != value
        }
        changed = _set(self._target, differs, self._journal)
        if changed.refused.keys() & self._done.readback.keys():
            # The value of an earlier case must not pass for this one's.
            self.restore()
            changed = _set(self._target, settings, self._journal)
        kept = {name: value for name, value in self._done.readback.items() if name not in differs}
        if differs and kept != self._read_again(kept):
            # Some adapters reset one setting when another is written.
            self.restore()
            changed, kept = _set(self._target, settings, self._journal), {}
        refused = {name: why for name, why in self._done.refused.items() if name not in differs}
        self._asked = dict(settings)
        self._done = SetUp({**kept, **changed.readback}, {**refused, **changed.refused})
        return self._done

    def _read_again(self, names: Iterable[str]) -> Settings:
        """The first port's values, as `apply` reads them back."""
        found: dict[str, Value] = {}
        for one in read(self._target, names):
            if one.value is not None:
                found.setdefault(one.setting.name, one.value)
        return found

    def restore(self) -> None:
        """Puts everything back as it was found. Raises HostError when something cannot be put back."""
        if stuck := restore(self._journal).failed:
            raise HostError(
                "could not be put back: " + "; ".join(map(str, stuck)),
                f"try again: linerate host restore {self._journal.path}",
            )
        self._asked, self._done = {}, SetUp({})


def _set(target: HostTarget, settings: Settings, journal: HostJournal) -> SetUp:
    """Sets all settings that the host accepts. `apply` takes all or none, so refused ones are left out."""
    refused: dict[str, str] = {}
    left = dict(settings)
    while left:
        applied = apply(target, left, journal)
        if not applied.refused:
            return SetUp(applied.readback, refused)
        for one in applied.refused:
            refused[one.setting] = one.reason
            left.pop(one.setting, None)
    return SetUp({}, refused)
