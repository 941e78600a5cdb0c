"""The settings of one host, as far as they can be had."""

from __future__ import annotations

from linerate.host import HostTarget, Journal, apply
from linerate.study.laboratory import SetUp
from linerate.study.model import Settings


def set_up_host(target: HostTarget, settings: Settings, journal: Journal) -> SetUp:
    """Sets what can be had. `apply` takes all or none, so what it refuses is left out and the rest tried again."""
    refused: dict[str, str] = {}
    left = dict(settings)
    while left:
        applied = apply(target, left, journal)
        if not applied.refused:
            return SetUp(applied.readback, refused)
        for one in applied.refused:
            refused[one.setting] = one.reason
            left.pop(one.setting, None)
    return SetUp({}, refused)
