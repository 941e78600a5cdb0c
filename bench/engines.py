"""What several engines bring: an array with two workers and two pools, against the same volumes in one pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from . import processes
from .cases import Result, Setting, measure
from .processes import CLIENT_CPU, SERVER_CPU, Shape

CPUS = (SERVER_CPU, CLIENT_CPU)
VOLUMES = 8
VOLUME_BYTES = 32 << 20
DISK_BYTES = 128 << 20
DISKS = 8
"""A pool on half of them has room for half of the volumes, twice."""

SHAPES = (
    Shape("4K random read, 8 thin volumes x 16", 4096, 16, VOLUMES, client_cpus=CPUS),
    Shape("4K random write, 8 thin volumes x 16", 4096, 16, VOLUMES, read_percent=0, client_cpus=CPUS),
    Shape("8K 67% read, 8 thin volumes x 5", 8192, 5, VOLUMES, 67, client_cpus=CPUS),
    Shape(
        "256K sequential read, 8 thin volumes x 2", 262_144, 2, VOLUMES, random_percent=0, client_cpus=CPUS
    ),
)
"""They sleep instead of polling, so that all CPU time is that of I/O."""


def engines(setting: Setting) -> Iterator[Result]:
    """Two pools, so two engines, against one pool; and against one worker, which has one engine."""
    for shape in SHAPES:
        with (
            array(setting, 2, CPUS) as two,
            array(setting, 1, CPUS) as one_pool,
            array(setting, 2, CPUS[:1]) as one_worker,
        ):
            rounds = [
                [measure(setting, shape, server) for server in (two, one_pool, one_worker)]
                for _ in range(setting.rounds)
            ]
        cpu_us = [[one.server_cpu_us + one.client_cpu_us for one in measures] for measures in rounds]
        both = tuple(of_two / of_one for of_two, _, of_one in cpu_us)
        yield Result(f"{shape.name}: CPU of both sides, two engines / one worker", 1.1, both, at_most=True)
        pools = tuple(of_two / of_one for of_two, of_one, _ in cpu_us)
        yield Result(f"{shape.name}: CPU of both sides, two engines / one", None, pools)
        iops = tuple(of_two.iops / of_one.iops for of_two, of_one, _ in rounds)
        yield Result(f"{shape.name}: IOPS, two engines / one", None, iops)


@contextmanager
def array(setting: Setting, pools: int, cpus: Sequence[int]) -> Iterator[processes.Server]:
    """Our array with a worker on each CPU, and its volumes dealt to thin pools on RAID 10, all written once."""
    each = DISKS // pools
    sets = [
        {
            "name": f"r{number}",
            "level": "raid10",
            "disks": [f"d{disk}" for disk in range(number * each, (number + 1) * each)],
            "initialise": "assume_clean",
        }
        for number in range(pools)
    ]
    storage = {
        "disks": [{"name": "d", "count": DISKS, "size_bytes": DISK_BYTES}],
        "raid_sets": sets,
        "pools": [{"name": f"p{number}", "raid_sets": [f"r{number}"]} for number in range(pools)],
    }
    volumes = [
        {"lun": lun, "name": f"v{lun}", "kind": "pool", "pool": f"p{lun % pools}", "size_bytes": VOLUME_BYTES}
        for lun in range(VOLUMES)
    ]
    with processes.serve(setting.directory, volumes, storage, cpus=cpus) as server:
        processes.fill(setting.directory, server, VOLUME_BYTES)
        processes.wait_until_touched(server)
        yield server
