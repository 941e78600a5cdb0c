"""`linerate demo`: the main job on an embedded array, in under two minutes, without root and without hardware."""

from __future__ import annotations

from typing import Annotated

import typer

from linerate.cli.job import flags

PRESET = "dell-nic"
VOLUME_BYTES = 128 << 20
ELAPSED_S = 20.0
WARMUP_S = 4.0


def demo(
    elapsed: Annotated[
        float, typer.Option(metavar="S", help="Measured seconds of each workload.")
    ] = ELAPSED_S,
    output: flags.Output = None,
    json: flags.Json = False,
) -> None:
    """Start an array with eight memory volumes, run the three workloads of a published NIC study, and report.

    The workloads are 8K random with 67 % reads, 256K sequential reads and 256K sequential writes, five I/Os in flight
    on each of eight volumes; sizes and times are scaled down.
    """
    from linerate.array import EmbeddedArray, eight_volumes
    from linerate.cli.job.options import Asked
    from linerate.cli.run import Keep, run_plan
    from linerate.workload import LunMap, Overrides

    with EmbeddedArray(eight_volumes(VOLUME_BYTES)) as array:
        overrides = Overrides(
            elapsed_s=elapsed,
            warmup_s=min(WARMUP_S, elapsed),
            interval_s=1.0,
            pause_s=0.0,
            size_bytes=VOLUME_BYTES,
            luns=LunMap({"*": array.url("{n-1}")}),
        )
        run_plan(Asked.of([], PRESET), overrides, Keep(output), json=json)
