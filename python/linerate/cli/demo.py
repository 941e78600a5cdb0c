"""`linerate demo`: the main job on a virtual SAN, in under three minutes, without root and without hardware."""

from __future__ import annotations

from typing import Annotated

import typer

from linerate.cli.job import flags
from linerate.cli.job.page import Page
from linerate.cli.study import verbs

STUDY = "demo"


def demo(
    quick: Annotated[
        bool, typer.Option("--quick", help="One short block: shows the steps, too short for results.")
    ] = False,
    output: flags.Output = None,
    wait: flags.WaitForLab = False,
    page: Page = False,
    json: flags.Json = False,
) -> None:
    """Build a virtual SAN, compare default settings with jumbo frames, small windows and one path, and report.

    The SAN has a host with two ports, two switches and an array with two ports and eight volumes, 20 ms away and back;
    it is gone afterwards, however this ends. The workloads are two of a published NIC study: 256K sequential reads and
    256K sequential writes, five I/Os in flight on each volume.
    """
    verbs.run(STUDY, quick=quick, output=output, wait=wait, page=page, json=json)
