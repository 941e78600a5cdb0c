"""The place where a study runs: a virtual SAN for a topology, this machine for hosts that exist."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from linerate.cli.console import error_width, folded

if TYPE_CHECKING:
    from pathlib import Path

    from linerate.study import Study
    from linerate.study.laboratory import Laboratory
    from linerate.volumes import Consent


def laboratory_for(study: Study, folder: Path, consent: Consent) -> Laboratory:
    """The laboratory that has every SAN of a study with that directory; `consent` is for volumes of hosts that exist.

    Raises RefusedError for data on these that may not be overwritten.
    """
    if all(san.hosts for san in study.sans):
        from linerate.study.laboratory.hosts import HostLaboratory

        laboratory = HostLaboratory(folder, consent)
        consent.check_names(_volumes(study))
        laboratory.give_free(study)
        return laboratory
    from linerate.study.laboratory.virtual import VirtualLaboratory

    return VirtualLaboratory(folder)


def machine_for(study: Study, folder: Path, *, wait: bool) -> AbstractContextManager[None]:
    """Holds this machine while a study runs on a virtual SAN of it; other studies need nothing of it.

    Raises HostError if another laboratory is busy here and `wait` is not set.
    """
    if not any(san.topology is not None and san.clock == "real" for san in study.sans):
        return nullcontext()
    from linerate.lab.machine_lock import machine_lock

    return machine_lock(f"study {study.name}", folder, alone=True, wait=wait, tell=tell_waiting)


def tell_waiting(line: str) -> None:
    """Standard output may be for programs."""
    sys.stderr.write(folded(line, error_width(), "  ") + "\n")


def _volumes(study: Study) -> Iterator[tuple[str, str]]:
    """Names and URLs of all volumes: those of workloads and those of hosts."""
    from linerate.study.laboratory.places import placed_volume

    yield from (
        ("", placed_volume(url).url) for san in study.sans for host in san.hosts for url in host.volumes
    )
    specs = (workload.spec for workload in study.workloads if workload.spec is not None)
    yield from ((volume.name, "") for spec in specs for volume in spec.volumes)
