"""The place where a study runs: a virtual SAN for a topology, this machine for hosts that exist."""

from __future__ import annotations

from linerate.study import StudyDirectory
from linerate.study.hosts import HostLaboratory
from linerate.study.laboratory import Laboratory
from linerate.study.virtual import VirtualLaboratory


def laboratory_for(directory: StudyDirectory) -> Laboratory:
    """The laboratory that has every SAN of a study."""
    if all(san.hosts for san in directory.study.sans):
        return HostLaboratory(directory.path)
    return VirtualLaboratory()
