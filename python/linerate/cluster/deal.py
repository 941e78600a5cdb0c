"""A run for the hosts that its file names: threads, rates and shares, dealt as vdbench deals them.

vdbench's guide says that a workload runs on each of its hosts and a sequential one on one of them only, and nothing
about threads and rates. Its source (RD_entry, HandleSkew) says:

- An SD's threads go round over the hosts that use it, one by one. The next SD goes on where the last one ended.
- A workload's rate and share are divided evenly over its pairs of SD and host; a pair without threads is left out.
- A workload that is sequential throughout has one host for each SD: the first that it names. With data validation that
  holds for all workloads of an SD.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linerate.cluster.deal_files import deal_files
from linerate.cluster.divide import Divided, part, whole
from linerate.errors import UserError
from linerate.workload import RunSpec, StreamSpec
from linerate.workload.files import FilesLoadSpec
from linerate.workload.hosts import LoadHosts

Users = Mapping[tuple[str, str], tuple[str, ...]]
"""(stream, volume) -> the hosts that run it there."""


def deal(spec: RunSpec, hosts: LoadHosts) -> Divided:
    """What each host runs; hosts that get nothing have no part.

    Raises UserError if a volume has too few I/Os in flight for a stream to run on it at all.
    """
    if isinstance(spec, FilesLoadSpec):
        return deal_files(spec, hosts)
    users = _users(spec, hosts)
    names = [volume.name for volume in spec.volumes]
    using = [
        hosts.ordered({label for (_, on), labels in users.items() if on == name for label in labels})
        for name in names
    ]
    counts = dealt_threads([volume.outstanding for volume in spec.volumes], using)
    threads = dict(zip(names, counts, strict=True))
    running = _with_threads(spec, users, threads)
    labels = hosts.ordered({label for found in running.values() for label in found})
    parts = {
        label: part(
            spec,
            label,
            number,
            [
                volume.model_copy(
                    update={
                        "outstanding": threads[volume.name][label],
                        "url": hosts.urls[volume.name][label],
                    }
                )
                for volume in spec.volumes
                if threads[volume.name].get(label)
            ],
            _portions(spec, running, label),
        )
        for number, label in enumerate(labels)
    }
    return parts, whole(spec, parts)


def dealt_threads(threads: Sequence[int], hosts: Sequence[Sequence[str]]) -> list[dict[str, int]]:
    """Round robin, volume by volume: how many of its threads each of its hosts gets. The turn goes on from one to the
    next, so that hosts with the same volumes differ by one at most in all."""
    dealt: list[dict[str, int]] = []
    turn = 0
    for count, labels in zip(threads, hosts, strict=True):
        if not labels:
            dealt.append({})
            continue
        each, rest = divmod(count, len(labels))
        extra = {(turn + one) % len(labels) for one in range(rest)}
        dealt.append({label: each + (place in extra) for place, label in enumerate(labels)})
        turn += count
    return dealt


def _users(spec: RunSpec, hosts: LoadHosts) -> dict[tuple[str, str], tuple[str, ...]]:
    """Before threads are dealt."""
    users: dict[tuple[str, str], tuple[str, ...]] = {}
    owners: dict[str, tuple[str, ...]] = {}
    for stream in spec.streams:
        for volume in stream.volumes:
            labels = hosts.running(stream.name, volume)
            if spec.verify == "on":
                labels = owners.setdefault(volume, labels[:1])
            users[stream.name, volume] = labels[:1] if _is_sequential(stream) else labels
    return users


def _is_sequential(stream: StreamSpec) -> bool:
    return stream.random_percent == 0


def _with_threads(
    spec: RunSpec, users: Users, threads: Mapping[str, Mapping[str, int]]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The same without hosts that got no threads on the volume."""
    running: dict[tuple[str, str], tuple[str, ...]] = {}
    for (stream, volume), labels in users.items():
        running[stream, volume] = tuple(label for label in labels if threads[volume][label])
        if not running[stream, volume]:
            count = sum(threads[volume].values())
            raise UserError(
                f"{spec.name}: {volume} has threads={count} for {len(threads[volume])} hosts, and {labels[0]}, which "
                f"alone runs {stream} on it, gets none",
                "give it more threads, or the workload another host",
            )
    return running


def _portions(spec: RunSpec, running: Users, label: str) -> dict[str, tuple[list[str], float]]:
    """By stream: its volumes on a host, and which part of its rate they are."""
    portions: dict[str, tuple[list[str], float]] = {}
    for stream in spec.streams:
        pairs = sum(len(running[stream.name, volume]) for volume in stream.volumes)
        own = [volume for volume in stream.volumes if label in running[stream.name, volume]]
        portions[stream.name] = (own, len(own) / pairs)
    return portions
