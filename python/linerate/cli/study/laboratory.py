"""The place where a study runs: a virtual SAN for a topology, this machine for hosts that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linerate.study import StudyDirectory
    from linerate.study.laboratory import Laboratory


def laboratory_for(directory: StudyDirectory) -> Laboratory:
    """The laboratory that has every SAN of a study."""
    if all(san.hosts for san in directory.study.sans):
        from linerate.study.laboratory.hosts import HostLaboratory

        return HostLaboratory(directory.path)
    from linerate.study.laboratory.virtual import VirtualLaboratory

    return VirtualLaboratory(directory.path)
