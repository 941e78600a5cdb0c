"""Putting a host's settings back from journals: after a study, after an interrupt, after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from linerate.errors import HostError, LinerateError
from linerate.host.catalogue import named
from linerate.host.change import mismatch
from linerate.host.device_setting import DeviceSetting, Refusal, kernel_of
from linerate.host.journal import HostChange, HostJournal
from linerate.host.linux.knob import DeviceGoneError
from linerate.host.namespace import find_namespace, namespace_cookie
from linerate.host.target import HostTarget, inside


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of putting things back. Changes that failed stay in their journal.

    `gone` are changes of a device or namespace that does not exist any more and took its settings along.
    """

    restored: tuple[HostChange, ...] = ()
    gone: tuple[HostChange, ...] = ()
    failed: tuple[Refusal, ...] = ()


_Noted = tuple[HostChange, HostJournal]
"""A change and the journal that holds it."""


def restore(journal: HostJournal, *others: HostJournal, since: int = 0) -> Restored:
    """Puts back what the journals hold, the newest change first, and checks the values.

    A change was made in one network namespace and is put back in that one, wherever this process may be.
    `since` is `mark` of a moment of the only journal: just later changes are put back. Raises HostError when
    another process holds the host.
    """
    pending: list[_Noted] = [(change, one) for one in (journal, *others) for change in one.pending]
    pending.sort(key=lambda noted: (noted[0].since_boot_s, noted[0].number), reverse=True)
    later = (noted for noted in pending if noted[0].number > since)
    outcomes = [_undo(list(group), journal) for _, group in groupby(later, key=_whose)]
    return Restored(
        restored=tuple(change for outcome in outcomes for change in outcome.restored),
        gone=tuple(change for outcome in outcomes for change in outcome.gone),
        failed=tuple(refusal for outcome in outcomes for refusal in outcome.failed),
    )


def _whose(noted: _Noted) -> tuple[HostTarget, tuple[int, int], int]:
    change, _ = noted
    return change.target, change.namespace, change.cookie


def _undo(changes: Sequence[_Noted], holder: HostJournal) -> Restored:
    """Changes of one host that follow each other. `holder` holds the lock on it."""
    target = _found(changes[0][0])
    if target is None:
        return _gone(changes)
    holder.lock(target)
    try:
        return inside(target, partial(_put_back, target, changes))
    except HostError as error:
        if target == changes[0][0].target:
            raise
        where = f"it was changed inside another network namespace, {target.namespace} ({error.message})"
        return Restored(failed=tuple(Refusal(change.setting, change.device, where) for change, _ in changes))


def _found(change: HostChange) -> HostTarget | None:
    """Where the namespace that was changed can be entered: by its path of then, or by a process that holds it now."""
    target = change.target
    try:
        if target.identity() == change.namespace:
            return target
    except HostError:
        pass  # nothing is at its old place
    place = find_namespace(change.namespace)
    return replace(target, namespace=place) if place else None


def _gone(changes: Sequence[_Noted]) -> Restored:
    for change, journal in changes:
        journal.undone(change, why="the network namespace is gone")
    return Restored(gone=tuple(change for change, _ in changes))


def _put_back(target: HostTarget, changes: Sequence[_Noted]) -> Restored:
    """Turns the knobs of one host back in the order given, then looks whether the oldest values stand."""
    cookies = {changes[0][0].cookie, namespace_cookie()} - {0}
    if len(cookies) > 1:  # a later namespace has the number of the one that is gone
        return _gone(changes)
    turned: list[_Noted] = []
    gone: list[_Noted] = []
    failed: list[Refusal] = []
    with kernel_of(target) as kernel:
        for noted in changes:
            change = noted[0]
            try:
                DeviceSetting(named(change.setting), change.device, kernel).restore(change.state)
            except DeviceGoneError:
                gone.append(noted)
            except LinerateError as error:
                failed.append(Refusal(change.setting, change.device, error.message))
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                # A knob takes its state for granted, and a line may have been edited.
                reason = f"what change {change.number} of {noted[1].path} wants back is unfit: {error!r}"
                failed.append(Refusal(change.setting, change.device, reason))
            else:
                turned.append(noted)
        oldest = {(change.setting, change.device): change for change, _ in turned}
        for change in oldest.values():
            entry = DeviceSetting(named(change.setting), change.device, kernel)
            if left := mismatch(entry, change):
                failed.append(left)
    stuck = {(refusal.setting, refusal.device) for refusal in failed}
    restored = [noted for noted in turned if (noted[0].setting, noted[0].device) not in stuck]
    for change, journal in restored:
        journal.undone(change)
    for change, journal in gone:
        journal.undone(change, why="the device is gone")
    return Restored(
        tuple(change for change, _ in restored), tuple(change for change, _ in gone), tuple(failed)
    )
