"""What can go wrong with a run directory, and what to do about it."""

from __future__ import annotations

from linerate.errors import HostError, UserError


class NotARunError(UserError):
    """The path holds no run directory, or one of a format that this version does not read."""


class RunExistsError(UserError):
    """The path already holds something: a run directory is written once."""


class RunClosedError(UserError):
    """The run is closed, and closed runs never change."""


class RunDamagedError(HostError):
    """A file of the run directory is missing, torn or changed since the run was closed."""
