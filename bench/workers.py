"""What a second core costs: CPU time per I/O with two workers of the array, against one. The client has both cores."""

from __future__ import annotations

from collections.abc import Iterator

from . import processes
from .cases import Result, Setting, measure
from .processes import CLIENT_CPU, SERVER_CPU, Shape

CPUS = (SERVER_CPU, CLIENT_CPU)
VOLUMES_BYTES = 256 << 20
SHAPES = (
    Shape("4K random read, 8 volumes x 16", 4096, 16, 8, client_cpus=CPUS),
    Shape("4K random write, 8 volumes x 16", 4096, 16, 8, read_percent=0, client_cpus=CPUS),
    Shape("8K 67% read, 8 volumes x 5", 8192, 5, 8, 67, client_cpus=CPUS),
    Shape("256K sequential read, 8 volumes x 2", 262_144, 2, 8, random_percent=0, client_cpus=CPUS),
)
"""They sleep instead of polling, so that all CPU time is that of I/O."""


def workers(setting: Setting) -> Iterator[Result]:
    """Two workers against one, by CPU time per I/O.

    A send over the loopback does the receiver's work too, so what one side saves the other may pay: the bar is for both
    sides together.
    """
    for shape in SHAPES:
        size = VOLUMES_BYTES // shape.volumes
        with (
            processes.array(setting.directory, shape, size, CPUS) as two,
            processes.array(setting.directory, shape, size) as one,
        ):
            pairs = [
                (measure(setting, shape, two), measure(setting, shape, one)) for _ in range(setting.rounds)
            ]
        both = tuple(
            (of_two.server_cpu_us + of_two.client_cpu_us) / (of_one.server_cpu_us + of_one.client_cpu_us)
            for of_two, of_one in pairs
        )
        yield Result(f"{shape.name}: CPU of both sides, two workers / one", 1.1, both, at_most=True)
        array = tuple(of_two.server_cpu_us / of_one.server_cpu_us for of_two, of_one in pairs)
        yield Result(f"{shape.name}: the same of the array alone", None, array)
        iops = tuple(of_two.iops / of_one.iops for of_two, of_one in pairs)
        yield Result(f"{shape.name}: IOPS, two workers / one", None, iops)
