"""Changing a host's settings so that all of them hold, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from linerate.host.setting import Setting, Value, Where


class Writer(Protocol):
    """Reads and turns settings that the host's kernel does not hold: a session's, or those of a lab's fabric.

    A writer for `fabric` goes before the kernel for the settings that it says are available.
    """

    def available(self, setting: Setting, device: str) -> str:
        """Empty, or why this writer cannot turn the setting; `device` is empty unless its scope is a port."""

    def read(self, setting: Setting, device: str) -> Value:
        """The present value."""

    def write(self, setting: Setting, device: str, value: Value) -> None:
        """Turns it. Raises linerate.errors.HostError when it cannot."""


Writers = Mapping[Where, Writer]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A setting that could not be had on a device (empty: on the host), and why."""

    setting: str
    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a change. When anything was refused, nothing is changed and `readback` is empty.

    `readback` holds what each setting was read back as, after all were written; where ports differ (max on
    unlike adapters) it holds the first port's value. `before` holds what they were.
    """

    readback: Mapping[str, Value] = field(default_factory=dict)
    before: Mapping[str, Value] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
