"""A run of a file system workload for several hosts: workloads, structures, threads and rates of each.

vdbench's guide says that a structure of several hosts needs shared=yes and that each of them uses its own files of it.
Its source (RD_entry, Work, SlaveList, FileAnchor) says how:

- The threads of a workload are divided by the number of its hosts, rounded down. Those of a format are for each host.
- The rate is divided evenly by the number of hosts that have a workload. On each of them its workloads divide it by
  their shares.
- Of a structure that n hosts share, a host has every n-th file. totalsize and workingsetsize are divided by n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linerate.cluster.divide import Divided, named, whole
from linerate.errors import UserError
from linerate.workload.files import FilesLoadSpec, FilesRunSpec, FileWorkSpec, HostPart, StructureSpec
from linerate.workload.hosts import LoadHosts
from linerate.workload.spec import StreamSpec, VolumeSpec


def deal_files(spec: FilesLoadSpec, hosts: LoadHosts) -> Divided:
    """What each host runs of a run whose file says it (`spec.hosts`); hosts without a workload have no part.

    Raises UserError for a structure that several hosts use and that is not shared.
    """
    labels = hosts.ordered({label for users in spec.hosts for label in users})
    return _parts(spec, labels, spec.hosts, divides_threads=spec.files.format is None)


def divide_files(spec: FilesLoadSpec, hosts: Sequence[str]) -> Divided:
    """What each of these hosts runs: all workloads, each with all of its threads, and an even part of the rate.

    Raises UserError for a structure that is not shared.
    """
    return _parts(spec, hosts, [tuple(hosts)] * len(spec.files.workloads), divides_threads=False)


def _parts(
    spec: FilesLoadSpec, labels: Sequence[str], users: Sequence[tuple[str, ...]], *, divides_threads: bool
) -> Divided:
    """`users`: by workload, which of the labels run it."""
    on = [
        tuple(label for label in labels if label in found)
        for found in _hosts_of_structures(spec.files, users)
    ]
    for structure, hosts in zip(spec.files.structures, on, strict=True):
        if len(hosts) > 1 and structure.name not in spec.shared:
            raise UserError(
                f"{spec.name}: {', '.join(hosts)} would use {structure.name} at the same time",
                "write shared=yes in its fsd= if they reach the same folder; else give each host an FSD of its own",
            )
    works = {
        label: {
            index: work.model_copy(
                update={"threads": max(1, work.threads // len(users[index]))} if divides_threads else {}
            )
            for index, work in enumerate(spec.files.workloads)
            if label in users[index]
        }
        for label in labels
    }
    parts = {
        label: _part(spec, label, (number, len(labels)), works[label], on)
        for number, label in enumerate(labels)
    }
    return parts, whole(spec, parts)


def _hosts_of_structures(files: FilesRunSpec, users: Sequence[tuple[str, ...]]) -> list[set[str]]:
    """By structure, the hosts that have a workload on it, also as a target."""
    on: list[set[str]] = [set() for _ in files.structures]
    for work, hosts in zip(files.workloads, users, strict=True):
        for index in (work.structure, work.target):
            if index is not None:
                on[index].update(hosts)
    return on


def _part(
    spec: FilesLoadSpec,
    host: str,
    place: tuple[int, int],
    works: Mapping[int, FileWorkSpec],
    on: Sequence[tuple[str, ...]],
) -> FilesLoadSpec:
    """`place` is the number of the host and how many there are; `works` are its workloads by their index."""
    files = spec.files
    number, hosts = place
    kept = [index for index, users in enumerate(on) if host in users]
    of_structure = {index: new for new, index in enumerate(kept)}
    of_work = {index: new for new, index in enumerate(works)}
    share = sum(work.share_percent for work in works.values())
    own_works = tuple(
        work.model_copy(
            update={
                "structure": of_structure[work.structure],
                "target": None if work.target is None else of_structure[work.target],
                "share_percent": work.share_percent * 100 / share,
            }
        )
        for work in works.values()
    )
    structures = tuple(_structure(files.structures[index], host, on[index]) for index in kept)
    rate = files.rate
    own = files.model_copy(
        update={
            "structures": structures,
            "workloads": own_works,
            "streams": tuple(
                stream.model_copy(update={"workload": of_work[stream.workload]})
                for stream in files.streams
                if stream.workload in of_work
            ),
            "rate": rate and rate.model_copy(update={"per_s": rate.per_s / hosts}),
        }
    )
    return spec.model_copy(
        update={
            "seed": spec.seed + number,
            "files": own,
            "volumes": _volumes(spec, host, own),
            "streams": _streams(spec, host, own),
            "hosts": (),
            "shared": (),
        }
    )


def _structure(structure: StructureSpec, host: str, users: tuple[str, ...]) -> StructureSpec:
    """As a host has it, under a name of its own."""
    update: dict[str, object] = {"name": named(host, structure.name)}
    count = len(users)
    if count > 1:
        update["host_part"] = HostPart(number=users.index(host), of=count)
        for key in ("total_bytes", "working_set_bytes"):
            if (size := getattr(structure, key)) is not None:
                update[key] = max(1, size // count)
    return structure.model_copy(update=update)


def _volumes(spec: FilesLoadSpec, host: str, own: FilesRunSpec) -> tuple[VolumeSpec, ...]:
    """The structures of a host as results show them."""
    of_name = {named(host, volume.name): volume for volume in spec.volumes}
    return tuple(
        of_name[structure.name].model_copy(
            update={
                "name": structure.name,
                "outstanding": sum(
                    work.threads for work in own.workloads if index in (work.structure, work.target)
                )
                or 1,
            }
        )
        for index, structure in enumerate(own.structures)
    )


def _streams(spec: FilesLoadSpec, host: str, own: FilesRunSpec) -> tuple[StreamSpec, ...]:
    """The operations of a host's workloads as results show them."""
    kept = {stream.name for stream in own.streams}
    return tuple(
        stream.model_copy(update={"volumes": tuple(named(host, name) for name in stream.volumes)})
        for stream in spec.streams
        if stream.name in kept
    )
