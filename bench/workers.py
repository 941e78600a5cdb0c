"""What a second core costs: CPU time of the array per I/O with two workers, against one. The client has both cores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from . import processes
from .cases import Result, Setting, interleaved, measure
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
    """Two workers against one, by CPU time of the array per I/O."""
    for shape in SHAPES:
        size = VOLUMES_BYTES // shape.volumes
        with (
            processes.array(setting.directory, shape, size, CPUS) as two,
            processes.array(setting.directory, shape, size) as one,
        ):

            def cpu_us(server: processes.Server, shape: Shape = shape) -> float:
                return measure(setting, shape, server).server_cpu_us

            ratios = interleaved(setting, partial(cpu_us, two), partial(cpu_us, one))
        yield Result(f"{shape.name}: CPU of the array, two workers / one", 1.1, ratios, at_most=True)
