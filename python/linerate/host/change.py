"""Reading a host's settings, and changing them so that all of them hold, or none.

`apply` reads every setting first and refuses before anything is written: a device without the setting, a value
beyond the device's maximum, a missing right. Then each change is journalled and made. At the end all are read
back, because writing one setting may change another. After an error everything written is put back, read again
and compared with the values from before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from linerate.errors import HostError
from linerate.host.catalogue import catalogue, named, parse_settings
from linerate.host.device_setting import DeviceSetting, Refusal, device_settings, kernel_of
from linerate.host.journal import HostChange, HostJournal
from linerate.host.linux.knob import Reading
from linerate.host.namespace import namespace_cookie
from linerate.host.setting import HostSetting, UnavailableError
from linerate.host.target import HostTarget, inside
from linerate.setting import MAX, Number, Value


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of a change. When anything was refused, nothing is changed and `readback` is empty.

    `readback` holds what each setting was read back as, after all were written; where ports differ (max on
    unlike adapters) it holds the first port's value. `before` holds what they were.
    """

    readback: Mapping[str, Value] = field(default_factory=dict)
    before: Mapping[str, Value] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A setting as a host has it: its value and where that comes from, or None and why.

    `most` is the largest number that the device takes, where it says so.
    """

    setting: HostSetting
    device: str
    value: Value | None
    source: str
    why: str = ""
    most: int | None = None


def read(target: HostTarget, names: Iterable[str] | None = None) -> list[Shown]:
    """Settings as they are now, those of a port once for each device. A missing one says why.

    Raises UserError for an unknown name and HostError when the host has vanished.
    """
    settings = [named(name) for name in names] if names is not None else list(catalogue().values())

    def look() -> list[Shown]:
        with kernel_of(target) as kernel:
            return [shown(entry) for entry in device_settings(settings, target, kernel)]

    return inside(target, look)


def apply(target: HostTarget, values: Mapping[str, Value], journal: HostJournal) -> Applied:
    """Sets values on a host, all or none, and reads them back.

    A setting that is not available, not permitted or was read back as something else is refused, not raised.
    Raises UserError for unknown names and values out of range; HostError when the host has vanished, another
    process holds it, or the journal cannot be written. `restore` puts everything back.
    """
    wanted = parse_settings(values)
    namespace = journal.lock(target)

    def work() -> Applied:
        with kernel_of(target) as kernel:
            found = device_settings([named(name) for name in wanted], target, kernel)
            steps, refused = prepared(found, wanted)
            if refused:
                return Applied(refused=tuple(refused))
            return _write_all(steps, target, namespace, journal)

    return inside(target, work)


def shown(entry: DeviceSetting) -> Shown:
    """The setting as it is now, or why it cannot be read."""
    source = entry.setting.linux.source if entry.setting.linux else entry.setting.where
    try:
        value = entry.read().value
        most = entry.most() if isinstance(entry.setting.kind, Number) else None
        return Shown(entry.setting, entry.device, value, source, most=most)
    except HostError as error:
        return Shown(entry.setting, entry.device, None, source, entry.refusal(error).reason)


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A setting that is about to be written: what it is now, and its new value."""

    entry: DeviceSetting
    before: Reading
    value: Value


def prepared(
    settings: Iterable[DeviceSetting], wanted: Mapping[str, Value]
) -> tuple[list[PendingChange], list[Refusal]]:
    """Reads every setting first. Gives what is to be written, and everything that forbids it."""
    steps: list[PendingChange] = []
    refused: list[Refusal] = []
    for entry in settings:
        try:
            before = entry.read()
            steps.append(PendingChange(entry, before, _within(entry, wanted[entry.setting.name])))
        except HostError as error:
            refused.append(entry.refusal(error))
    missing = (
        wanted.keys() - {step.entry.setting.name for step in steps} - {refusal.setting for refusal in refused}
    )
    refused += [Refusal(name, "", "no port was named to set it on") for name in wanted if name in missing]
    return steps, refused


def _within(entry: DeviceSetting, value: Value) -> Value:
    """The value, checked against what the device can do; max becomes that."""
    if not isinstance(entry.setting.kind, Number):
        return value
    most = entry.most()
    if value == MAX:
        if most is None:
            raise UnavailableError(f"{entry.device} does not say how much it can do", "give a number")
        return most
    if most is not None and isinstance(value, int) and value > most:
        raise UnavailableError(
            f"{value} is more than the {most} {entry.setting.unit} that {entry.device} can do"
        )
    return value


def _write_all(
    steps: Sequence[PendingChange], target: HostTarget, namespace: tuple[int, int], journal: HostJournal
) -> Applied:
    """Writes every setting. If one fails, those that were written are put back."""
    done: list[tuple[PendingChange, HostChange]] = []
    refused: list[Refusal] = []
    whole = False
    try:
        for step in steps:
            done.append((step, journal.record(_change(step, target, namespace))))
            if refusal := _write(step):
                refused.append(refusal)
                break
        found = {} if refused else _read_back(steps, refused)
        whole = not refused
    finally:
        if not whole:
            _take_back(done, journal)
    if refused:
        return Applied(refused=tuple(refused))
    before = {step.entry.setting.name: step.before.value for step in reversed(steps)}
    return Applied(readback=found, before={name: before[name] for name in found})


def _change(step: PendingChange, target: HostTarget, namespace: tuple[int, int]) -> HostChange:
    entry, before = step.entry, step.before
    return HostChange(
        number=0,
        target=target,
        namespace=namespace,
        setting=entry.setting.name,
        device=entry.device,
        before=before.value,
        state=before.state,
        wanted=step.value,
        cookie=namespace_cookie(),
    )


def _write(step: PendingChange) -> Refusal | None:
    try:
        step.entry.write(step.value)
    except HostError as error:
        return step.entry.refusal(error)
    return None


def _read_back(steps: Sequence[PendingChange], refused: list[Refusal]) -> dict[str, Value]:
    """Reads all settings after all were written. Differences go to `refused`."""
    found: dict[str, Value] = {}
    for step in steps:
        entry = step.entry
        try:
            value = entry.read().value
        except HostError as error:
            refused.append(entry.refusal(error))
            continue
        if value != step.value:
            text = entry.setting.text
            reason = f"{text(step.value)} was written and {text(value)} read back"
            refused.append(Refusal(entry.setting.name, entry.device, reason))
        found.setdefault(entry.setting.name, value)
    return found


def _take_back(done: Sequence[tuple[PendingChange, HostChange]], journal: HostJournal) -> None:
    """Undoes a change that failed, last setting first, and reads the settings again."""
    stuck: list[Refusal] = []
    restored: list[tuple[PendingChange, HostChange]] = []
    for step, change in reversed(done):
        try:
            step.entry.restore(change.state)
        except HostError as error:
            if _is_unchanged(step):  # a kernel that refuses the change refuses its reversal too
                journal.undone(change, why="nothing was changed")
            else:
                stuck.append(step.entry.refusal(error))
        else:
            restored.append((step, change))
    for step, change in restored:
        if left := mismatch(step.entry, change):
            stuck.append(left)
        else:
            journal.undone(change)
    if stuck:
        raise HostError(
            "could not be put back: " + "; ".join(map(str, stuck)),
            f"`linerate host restore {journal.path}` tries again",
        )


def _is_unchanged(step: PendingChange) -> bool:
    """Whether the setting still has the value and the state from before."""
    try:
        return step.entry.read() == step.before
    except HostError:
        return False


def mismatch(entry: DeviceSetting, change: HostChange) -> Refusal | None:
    """The difference that is left after a setting was put back; None if there is none."""
    found = shown(entry)
    if found.value == change.before:
        return None
    text = entry.setting.text
    now = found.why if found.value is None else text(found.value)
    return Refusal(change.setting, change.device, f"is {now}, not {text(change.before)} again")
