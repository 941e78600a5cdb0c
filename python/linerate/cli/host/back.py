"""What `linerate host restore` does: opens every journal of this host and puts back what they hold, as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from json import dumps
from pathlib import Path

import typer

from linerate.cli.host.show import joined
from linerate.errors import HostError, LinerateError
from linerate.host import (
    HostChange,
    HostJournal,
    Restored,
    default_journal,
    known_journals,
    named,
    restore,
    state_folder,
)


def put_back(journals: Sequence[Path] | None, *, json: bool) -> None:
    """Restores from these journals, or from all that this user left on this host, and says what became of it.

    A journal that cannot be read does not hold the others up. Raises the first LinerateError in the end.
    """
    troubles: list[LinerateError] = []
    with ExitStack() as stack:
        opened = list(_opened(journals if journals is not None else _every(), stack, troubles))
        outcome = restore(*opened) if opened else Restored()
        for journal in opened:
            # Journals of a study stay in its directory, the default journals are removed when they are empty.
            if journal.path.parent == state_folder() and not journal.pending:
                journal.path.unlink()
    _tell(outcome, json=json, quiet=bool(troubles))
    if outcome.failed:
        raise HostError("could not be put back: " + joined(outcome.failed), "mend the cause and try again")
    if troubles:
        raise troubles[0]


def _every() -> list[Path]:
    own = default_journal()
    return sorted({*known_journals(), *([own] if own.exists() else [])})


def _opened(
    journals: Iterable[Path], stack: ExitStack, troubles: list[LinerateError]
) -> Iterable[HostJournal]:
    for path in journals:
        try:
            yield stack.enter_context(HostJournal(path))
        except LinerateError as error:
            troubles.append(error)


def _tell(outcome: Restored, *, json: bool, quiet: bool) -> None:
    if json:
        lists = {"restored": outcome.restored, "gone": outcome.gone}
        report = {key: [_object(change) for change in changes] for key, changes in lists.items()}
        refused = [
            {"setting": one.setting, "device": one.device or None, "reason": one.reason}
            for one in outcome.failed
        ]
        typer.echo(dumps({"schema": "linerate.host-restored/1", **report, "failed": refused}))
        return
    for change in outcome.restored:
        typer.echo(f"{_place(change)}: back at {named(change.setting).text(change.before)}")
    for change in outcome.gone:
        typer.echo(f"{_place(change)}: its device or network namespace is gone")
    if not (quiet or outcome.restored or outcome.gone or outcome.failed):
        typer.echo("all settings are as they were")


def _object(change: HostChange) -> dict[str, object]:
    return {"setting": change.setting, "device": change.device or None, "value": change.before}


def _place(change: HostChange) -> str:
    return f"{change.setting} of {change.device}" if change.device else change.setting
