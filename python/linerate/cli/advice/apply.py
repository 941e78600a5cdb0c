"""What `linerate advise --apply` does: shows the changes, asks, makes them under the journal, shows the values then."""

from __future__ import annotations

import os
import socket
import sys

import typer

from linerate.advice import (
    AuditResult,
    AuditSources,
    MendPlan,
    apply_mends,
    plan_lines,
    plan_mends,
    summary_line,
)
from linerate.cli.console import show_lines
from linerate.errors import HostError, UserError
from linerate.host import HostJournal, default_journal
from linerate.plural import plural


def mended(result: AuditResult, sources: AuditSources, *, yes: bool) -> AuditResult:
    """The audit after the changes; the same audit when there is nothing to change.

    Raises UserError without consent and HostError without root or when a change is refused; nothing is changed then.
    """
    made = plan_mends(result, socket.gethostname())
    show_lines(["", "to change on this host:", *plan_lines(made)] if made.mends else ["", *plan_lines(made)])
    if not made.mends:
        show_lines(["nothing to change on this host"])
        return result
    if os.geteuid() != 0:
        raise HostError("nothing was changed: only root may change these settings", "run it again with sudo")
    _consent(made, yes=yes)
    path = default_journal()
    with HostJournal(path) as journal:
        try:
            done = apply_mends(made, sources, result, journal)
        finally:
            if not journal.pending:
                path.unlink()
    show_lines(["", "changed:"])
    for mend, value in zip(made.mends, done.readback, strict=True):
        text = mend.step.setting.text
        show_lines([f"    {mend.place}: {text(value)} (was {text(mend.step.before)})"])
    show_lines([f"now: {summary_line(done.after.outcomes)}", "to put it back: linerate host restore"])
    return done.after


def _consent(made: MendPlan, *, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was changed: --apply asks first", "add --yes to change without a question")
    if not typer.confirm(f"Make {plural(len(made.mends), 'change')} on this host?", err=True):
        raise UserError("nothing was changed", "`linerate host apply` changes single settings")
