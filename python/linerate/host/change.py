"""Reading a host's settings, and changing them so that all of them hold, or none.

`apply` reads every knob first and refuses before anything is turned: a device without the setting, a value
beyond the device's maximum, a missing right. Then each change is journalled and made, and at the end all are
read back, because one knob may move another. Whatever goes wrong on the way, what was turned is put back and
held against what was there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from linerate.errors import HostError
from linerate.host.catalogue import catalogue, named, parse_settings
from linerate.host.hand import Hand, Refusal, hands, kernel_of
from linerate.host.journal import Change, Journal
from linerate.host.linux.knob import Reading
from linerate.host.namespace import namespace_cookie
from linerate.host.setting import MAX, Number, Setting, UnavailableError, Value
from linerate.host.target import HostTarget, inside


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a change. When anything was refused, nothing is changed and `readback` is empty.

    `readback` holds what each setting was read back as, after all were written; where ports differ (max on
    unlike adapters) it holds the first port's value. `before` holds what they were.
    """

    readback: Mapping[str, Value] = field(default_factory=dict)
    before: Mapping[str, Value] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A setting as a host has it: its value and where that comes from, or None and why."""

    setting: Setting
    device: str
    value: Value | None
    source: str
    why: str = ""


def read(target: HostTarget, names: Iterable[str] | None = None) -> list[Shown]:
    """Settings as they stand, those of a port once for each device; what is not there says why.

    Raises UserError for an unknown name and HostError when the host has vanished.
    """
    settings = [named(name) for name in names] if names is not None else list(catalogue().values())

    def look() -> list[Shown]:
        with kernel_of(target) as kernel:
            return [shown(hand) for hand in hands(settings, target, kernel)]

    return inside(target, look)


def apply(target: HostTarget, values: Mapping[str, Value], journal: Journal) -> Applied:
    """Sets values on a host, all or none, and reads them back.

    A setting that is not available, not permitted or was read back as something else is refused, not raised.
    Raises UserError for unknown names and values out of range; HostError when the host has vanished, somebody
    else holds it, or the journal cannot be written. `restore` puts everything back.
    """
    wanted = parse_settings(values)
    namespace = journal.lock(target)

    def work() -> Applied:
        with kernel_of(target) as kernel:
            found = hands([named(name) for name in wanted], target, kernel)
            turns, refused = prepared(found, wanted)
            if refused:
                return Applied(refused=tuple(refused))
            return _turned(turns, target, namespace, journal)

    return inside(target, work)


def shown(hand: Hand) -> Shown:
    """The setting as it stands, or why it cannot be read."""
    source = hand.setting.linux.source if hand.setting.linux else hand.setting.where
    try:
        return Shown(hand.setting, hand.device, hand.read().value, source)
    except HostError as error:
        return Shown(hand.setting, hand.device, None, source, hand.refusal(error).reason)


@dataclass(frozen=True, slots=True)
class Turn:
    """A knob that is about to be turned: what it stands at, and the value for it."""

    hand: Hand
    before: Reading
    value: Value


def prepared(hands: Iterable[Hand], wanted: Mapping[str, Value]) -> tuple[list[Turn], list[Refusal]]:
    """What is to be turned, after a look at every knob; and everything that stands in the way."""
    turns: list[Turn] = []
    refused: list[Refusal] = []
    for hand in hands:
        try:
            before = hand.read()
            turns.append(Turn(hand, before, _within(hand, wanted[hand.setting.name])))
        except HostError as error:
            refused.append(hand.refusal(error))
    missing = wanted.keys() - {turn.hand.setting.name for turn in turns} - {one.setting for one in refused}
    refused += [Refusal(name, "", "no port was named to set it on") for name in wanted if name in missing]
    return turns, refused


def _within(hand: Hand, value: Value) -> Value:
    """The value, checked against what the device can do; max becomes that."""
    if not isinstance(hand.setting.kind, Number):
        return value
    most = hand.most()
    if value == MAX:
        if most is None:
            raise UnavailableError(f"{hand.device} does not say how much it can do", "give a number")
        return most
    if most is not None and isinstance(value, int) and value > most:
        raise UnavailableError(
            f"{value} is more than the {most} {hand.setting.unit} that {hand.device} can do"
        )
    return value


def _turned(
    turns: Sequence[Turn], target: HostTarget, namespace: tuple[int, int], journal: Journal
) -> Applied:
    """Turns every knob, or puts back those that were turned."""
    done: list[tuple[Turn, Change]] = []
    refused: list[Refusal] = []
    whole = False
    try:
        for turn in turns:
            done.append((turn, journal.record(_change(turn, target, namespace))))
            if refusal := _turn(turn):
                refused.append(refusal)
                break
        found = {} if refused else _read_back(turns, refused)
        whole = not refused
    finally:
        if not whole:
            _take_back(done, journal)
    if refused:
        return Applied(refused=tuple(refused))
    before = {turn.hand.setting.name: turn.before.value for turn in reversed(turns)}
    return Applied(readback=found, before={name: before[name] for name in found})


def _change(turn: Turn, target: HostTarget, namespace: tuple[int, int]) -> Change:
    hand, before = turn.hand, turn.before
    return Change(
        number=0,
        target=target,
        namespace=namespace,
        setting=hand.setting.name,
        device=hand.device,
        before=before.value,
        state=before.state,
        wanted=turn.value,
        cookie=namespace_cookie(),
    )


def _turn(turn: Turn) -> Refusal | None:
    try:
        turn.hand.write(turn.value)
    except HostError as error:
        return turn.hand.refusal(error)
    return None


def _read_back(turns: Sequence[Turn], refused: list[Refusal]) -> dict[str, Value]:
    """What was set, as it stands now that everything is set; what is otherwise goes to `refused`."""
    found: dict[str, Value] = {}
    for turn in turns:
        hand = turn.hand
        try:
            value = hand.read().value
        except HostError as error:
            refused.append(hand.refusal(error))
            continue
        if value != turn.value:
            text = hand.setting.text
            reason = f"{text(turn.value)} was written and {text(value)} read back"
            refused.append(Refusal(hand.setting.name, hand.device, reason))
        found.setdefault(hand.setting.name, value)
    return found


def _take_back(done: Sequence[tuple[Turn, Change]], journal: Journal) -> None:
    """Undoes turns of a change that did not come through, the last one first, and looks whether that held."""
    stuck: list[Refusal] = []
    turned: list[tuple[Turn, Change]] = []
    for turn, change in reversed(done):
        try:
            turn.hand.restore(change.state)
        except HostError as error:
            stuck.append(turn.hand.refusal(error))
        else:
            turned.append((turn, change))
    for turn, change in turned:
        if otherwise := stands_otherwise(turn.hand, change):
            stuck.append(otherwise)
        else:
            journal.undone(change)
    if stuck:
        raise HostError(
            "could not be put back: " + "; ".join(map(str, stuck)),
            f"`linerate host restore {journal.path}` tries again",
        )


def stands_otherwise(hand: Hand, change: Change) -> Refusal | None:
    """What a setting stands at after it was put back, if that is not what it was before the change."""
    found = shown(hand)
    if found.value == change.before:
        return None
    text = hand.setting.text
    now = found.why if found.value is None else text(found.value)
    return Refusal(change.setting, change.device, f"is {now}, not {text(change.before)} again")
