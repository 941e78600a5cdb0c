"""What differs between two sets of runs besides the figures: hosts, settings, workloads, versions.

When results differ, this list is where the reason is looked for first. Entries of many volumes are folded
into one, for a setting that differs on eight volumes is one difference. What differs between any two runs is left
out: see `_LEFT_OUT`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linerate.results import RunDirectory, StepRecord
from linerate.results.facts import find_fact, label_of, show_fact

_ENDS = ("local", "peer", "local_address", "peer_address", "isid", "tsih", "rtt_us")
_PLACES = ("url", "name", "seed", "netns")
_PROCESS = ("thread_id", "worker", "started_monotonic_ns", "tsc_hz")
_LEFT_OUT = frozenset((*_ENDS, *_PLACES, *_PROCESS))
"""Keys whose values differ between any two runs: ends of connections, names and places, threads and clocks."""
_CURVE_POINT = re.compile(r"_\(\d+(?:\.\d+)?%\)")
_CURVE_RATE = "asked.arrival.rate_iops"
_VALUES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact, setting or part of the workload that differs. Values are as shown to people."""

    key: str
    label: str
    a: str
    b: str


def differences_between(a: Sequence[RunDirectory], b: Sequence[RunDirectory]) -> tuple[Difference, ...]:
    """Every key whose set of values differs between the sides, of a step only if both sides have it."""
    steps_a, steps_b = ({step.key for run in side for step in run.manifest.steps} for side in (a, b))
    values_a, values_b = _values(a, steps_b), _values(b, steps_a)
    return tuple(
        Difference(key=key, label=fact_label(key), a=_shown(values_a.get(key)), b=_shown(values_b.get(key)))
        for key in dict.fromkeys([*values_a, *values_b])
        if values_a.get(key) != values_b.get(key)
    )


def _values(runs: Sequence[RunDirectory], steps: Collection[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in runs:
        for key, value in _facts_of(run, steps):
            found.setdefault(key, set()).add(value)
    return found


def _facts_of(run: RunDirectory, steps: Collection[str]) -> Iterator[tuple[str, str]]:
    for key, value in host_facts(run):
        fact = find_fact(key)
        if fact is None or fact.compared:
            yield key, value
    for step in (step for step in run.manifest.steps if step.key in steps):
        for path, value in step_facts(step):
            yield f"{step.key}: {path}", value


def host_facts(run: RunDirectory) -> Iterator[tuple[str, str]]:
    """(key, value as shown) of each fact about the host and of each version (`version.NAME`)."""
    for key, value in run.manifest.environment.items():
        yield key, show_fact(key, value)
    for name, version in run.manifest.versions.items():
        yield f"version.{name}", version


def step_facts(step: StepRecord) -> Iterator[tuple[str, str]]:
    """(dotted path, text) of what a step asked for (`asked.`) and of what it read back (`used.`).

    Left out is what differs between any two runs. A path occurs several times where volumes differ.
    """
    load = step.given.load if step.given is not None else step.spec
    for path, value in (*_flat("asked", load), *_flat("used", step.facts)):
        if path != _CURVE_RATE or not is_curve_point(step):
            yield path, value


def is_curve_point(step: StepRecord) -> bool:
    """Whether the rate of the step is a percentage of the maximum that the same run measured."""
    return _CURVE_POINT.search(step.name) is not None


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


def fact_label(key: str) -> str:
    """What people read for a key."""
    return label_of(key) if find_fact(key) else key


def _shown(values: set[str] | None) -> str:
    if not values:
        return "not recorded"
    ordered = sorted(values)
    more = f" and {len(ordered) - _VALUES_SHOWN} more" if len(ordered) > _VALUES_SHOWN else ""
    return " | ".join(ordered[:_VALUES_SHOWN]) + more
