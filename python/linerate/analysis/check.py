"""The `check` verb: doubts a result, with reasons."""

from __future__ import annotations

from linerate.results import RunDirectory, Validity


def check_run(run: RunDirectory) -> Validity:
    """Apply every rule to a run. The gravest finding decides the stamp: note -> valid, suspect, void."""
    raise NotImplementedError
