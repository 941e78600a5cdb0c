"""The command line: one thin file per verb.

Open this file first. `app` holds the verbs and turns every failure into one message and an exit code; each verb's file
reads its options and calls the room that does the work; `job` has a plan carried out (`linerate.run`) before the user's
eyes and shows the result; `view` shows what happens, as a live table, as plain lines, or as JSON.

Exit codes: 0 done, 1 a run failed or a result is not to be trusted, 2 the user's mistake, 130 interrupted.

Verbs import their room when they are called, not before: `linerate --help` and a mistyped option answer at once.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and gives its exit code; `linerate.cli.app.main` with Ctrl-C heard from the first import."""
    try:
        from linerate.cli import app

        return app.main(argv)
    except KeyboardInterrupt:
        return INTERRUPTED
