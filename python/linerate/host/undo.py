"""Putting a host's settings back from a journal: after a study, after an interrupt, after a crash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from linerate.errors import HostError
from linerate.host.catalogue import named
from linerate.host.change import shown
from linerate.host.hand import Hand, Refusal, kernel_of
from linerate.host.journal import Change, Journal
from linerate.host.linux.knob import DeviceGoneError
from linerate.host.target import HostTarget, inside


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of putting things back. Changes that failed stay in the journal.

    `gone` are changes of a device or namespace that does not exist any more and took its settings along.
    """

    restored: tuple[Change, ...] = ()
    gone: tuple[Change, ...] = ()
    failed: tuple[Refusal, ...] = ()


def restore(journal: Journal, *, since: int = 0) -> Restored:
    """Puts back what the journal holds, the newest first, and looks whether it stands as before.

    `since` is `journal.mark` of a moment: only later changes are put back. Raises HostError when somebody
    else holds the host.
    """
    outcomes = []
    pending = [change for change in reversed(journal.pending) if change.number > since]
    for target, changes in _by_target(pending):
        if _alive(target, changes[0]):
            journal.lock(target)
            outcomes.append(inside(target, partial(_put_back, target, changes, journal)))
        elif target.namespace is None:
            outcomes.append(Restored(failed=tuple(_elsewhere(change, journal) for change in changes)))
        else:
            _let_go(changes, journal, "the host has vanished")
            outcomes.append(Restored(gone=tuple(changes)))
    return Restored(
        restored=tuple(change for outcome in outcomes for change in outcome.restored),
        gone=tuple(change for outcome in outcomes for change in outcome.gone),
        failed=tuple(refusal for outcome in outcomes for refusal in outcome.failed),
    )


def _by_target(changes: Iterable[Change]) -> list[tuple[HostTarget, list[Change]]]:
    grouped: dict[HostTarget, list[Change]] = {}
    for change in changes:
        grouped.setdefault(change.target, []).append(change)
    return list(grouped.items())


def _alive(target: HostTarget, change: Change) -> bool:
    """Whether the namespace that was changed is still there, and not a later one at the same place."""
    try:
        return target.identity() == change.namespace
    except HostError:
        return False


def _elsewhere(change: Change, journal: Journal) -> Refusal:
    """A process changed its own namespace, which may be there still: only from inside can anybody tell."""
    way_out = f"restore it there; if that is gone, delete {journal.path}"
    return Refusal(
        change.setting, change.device, f"it was changed inside another network namespace ({way_out})"
    )


def _let_go(changes: Iterable[Change], journal: Journal, why: str) -> None:
    for change in changes:
        journal.undone(change, why=why)


def _put_back(target: HostTarget, changes: Sequence[Change], journal: Journal) -> Restored:
    """Turns the knobs of one host back in the order given, then looks whether the oldest values stand."""
    turned: list[Change] = []
    gone: list[Change] = []
    failed: list[Refusal] = []
    with kernel_of(target) as kernel:
        for change in changes:
            hand = Hand(named(change.setting), change.device, kernel)
            try:
                hand.restore(change.state)
            except DeviceGoneError:
                gone.append(change)
            except HostError as error:
                failed.append(hand.refusal(error))
            else:
                turned.append(change)
        oldest = {(change.setting, change.device): change for change in turned}
        for change in oldest.values():
            hand = Hand(named(change.setting), change.device, kernel)
            if stands := _stands_otherwise(hand, change):
                failed.append(stands)
    stuck = {(refusal.setting, refusal.device) for refusal in failed}
    restored = [change for change in turned if (change.setting, change.device) not in stuck]
    for change in restored:
        journal.undone(change)
    _let_go(gone, journal, "the device is gone")
    return Restored(tuple(restored), tuple(gone), tuple(failed))


def _stands_otherwise(hand: Hand, change: Change) -> Refusal | None:
    found = shown(hand)
    if found.value == change.before:
        return None
    text = hand.setting.text
    now = found.why if found.value is None else text(found.value)
    return Refusal(change.setting, change.device, f"stands at {now}, not at {text(change.before)} again")
