"""The place where a study runs: a virtual SAN for a topology, hosts that exist for hosts."""

from __future__ import annotations

from linerate.study import StudyDirectory
from linerate.study.laboratory import Laboratory
from linerate.study.virtual import VirtualLaboratory


def laboratory_for(directory: StudyDirectory) -> Laboratory:
    """The laboratory that has every SAN of a study."""
    return VirtualLaboratory()
