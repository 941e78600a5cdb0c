"""What a change would do, in commands for Linux that a person reads before anything is done, and their undoing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from linerate.errors import HostError
from linerate.host.catalogue import named, parse_settings
from linerate.host.change import prepared
from linerate.host.device_setting import Refusal, device_settings, kernel_of
from linerate.host.setting import HostSetting
from linerate.host.target import HostTarget, inside
from linerate.setting import OnOff, Value


@dataclass(frozen=True, slots=True)
class PlannedSetting:
    """One setting of one device: its value, its new value, the commands for both."""

    setting: HostSetting
    device: str
    before: Value
    value: Value
    commands: tuple[str, ...]
    undo: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostPlan:
    """Steps in their order, commands for open-iscsi's records, and what cannot be had.

    `apply` goes the same way through netlink; it applies nothing while anything is refused.
    """

    steps: tuple[PlannedSetting, ...]
    records: tuple[str, ...]
    refused: tuple[Refusal, ...]

    @property
    def commands(self) -> list[str]:
        """The commands of all steps; none for settings that have the wanted value already."""
        return [command for step in self.steps if step.value != step.before for command in step.commands]

    @property
    def undo(self) -> list[str]:
        """The commands that put everything back: the last setting first, its ports in their order."""
        steps = [step for step in self.steps if step.value != step.before]
        names = dict.fromkeys(step.setting.name for step in reversed(steps))
        return [line for name in names for step in steps if step.setting.name == name for line in step.undo]


def plan(target: HostTarget, values: Mapping[str, Value]) -> HostPlan:
    """What `apply` would do. Reads the host, changes nothing.

    Raises UserError for unknown names and values out of range, HostError when the host has vanished.
    """
    wanted = parse_settings(values)
    sessions = {name: value for name, value in wanted.items() if named(name).where == "session"}
    kept = {name: value for name, value in wanted.items() if name not in sessions}
    steps, refused = inside(target, partial(_steps, target, kept))
    records = tuple(line for name, value in sessions.items() for line in _record(named(name), value))
    return HostPlan(tuple(steps), records, tuple(refused))


def _steps(target: HostTarget, wanted: Mapping[str, Value]) -> tuple[list[PlannedSetting], list[Refusal]]:
    steps = []
    with kernel_of(target) as kernel:
        found = device_settings([named(name) for name in wanted], target, kernel)
        pending, refused = prepared(found, wanted)
        for one in pending:
            setting, device, before = one.entry.setting, one.entry.device, one.before
            if knob := setting.linux:
                try:
                    there = tuple(knob.commands(device, one.value, before))
                except HostError as error:
                    refused.append(one.entry.refusal(error))
                    continue
                back = tuple(knob.commands(device, before.value, before))
                steps.append(PlannedSetting(setting, device, before.value, one.value, there, back))
    return steps, refused


def iscsi_record(setting: HostSetting, value: Value) -> tuple[str, str] | None:
    """Name and text of a session's setting in the records of open-iscsi, where it has one."""
    name = setting.names.open_iscsi
    text = ("Yes" if value else "No") if isinstance(setting.kind, OnOff) else str(value)
    text = {"none": "None", "crc32c": "CRC32C", "offer": "CRC32C,None"}.get(text, text)
    return (name, text) if name else None


def _record(setting: HostSetting, value: Value) -> list[str]:
    """open-iscsi keeps a session's settings in records of its own; they hold at the next login."""
    record = iscsi_record(setting, value)
    return [f"iscsiadm -m node -o update -n '{record[0]}' -v {record[1]}"] if record else []
