"""What differs between two sets of runs besides the figures: hosts, settings, workloads, versions.

When results differ, this list is where the reason is looked for first. Entries of many volumes are folded
into one, for a setting that differs on eight volumes is one difference, and addresses that change with every
connection are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linerate.results import RunDirectory
from linerate.results.facts import find_fact, label_of, show_fact

_LEFT_OUT = {"local", "peer", "url", "seed", "name", "tsc_hz", "worker", "isid", "tsih", "rtt_us"}
_VALUES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact, setting or part of the workload that differs. Values are as shown to people."""

    key: str
    label: str
    a: str
    b: str


def differences_between(a: Sequence[RunDirectory], b: Sequence[RunDirectory]) -> tuple[Difference, ...]:
    """Every key whose set of values differs between the sides."""
    values_a, values_b = _values(a), _values(b)
    return tuple(
        Difference(key=key, label=_label(key), a=_shown(values_a.get(key)), b=_shown(values_b.get(key)))
        for key in dict.fromkeys([*values_a, *values_b])
        if values_a.get(key) != values_b.get(key)
    )


def _values(runs: Sequence[RunDirectory]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in runs:
        for key, value in _facts_of(run):
            found.setdefault(key, set()).add(value)
    return found


def _facts_of(run: RunDirectory) -> Iterator[tuple[str, str]]:
    manifest = run.manifest
    for key, value in manifest.environment.items():
        fact = find_fact(key)
        if fact is None or fact.compared:
            yield key, show_fact(key, value)
    for name, version in manifest.versions.items():
        yield f"version.{name}", version
    for step in manifest.steps:
        yield from _flat(f"{step.key}: asked", step.spec)
        yield from _flat(f"{step.key}: used", step.facts)


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """(dotted path, text) of every leaf.

    The place in a list is not part of the path, so that volumes fold into one.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in _LEFT_OUT:
                yield from _flat(f"{path}.{key}", item)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for item in value:
            yield from _flat(path, item)
        yield f"{path} (number)", str(len(value))
    elif isinstance(value, list):
        yield path, ", ".join(str(item) for item in value)
    else:
        yield path, "not set" if value is None else str(value)


def _label(key: str) -> str:
    return label_of(key) if find_fact(key) else key


def _shown(values: set[str] | None) -> str:
    if not values:
        return "not recorded"
    ordered = sorted(values)
    more = f" and {len(ordered) - _VALUES_SHOWN} more" if len(ordered) > _VALUES_SHOWN else ""
    return " | ".join(ordered[:_VALUES_SHOWN]) + more
