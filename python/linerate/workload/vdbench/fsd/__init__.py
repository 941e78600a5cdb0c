"""File system workloads of vdbench files: FSDs and FWDs.

Open this file first. `settings` has what FSDs, FWDs and their RDs say, typed and checked; `data` what blocks of files
contain; `hosts` which hosts run what; `expand` combines them to the steps of a plan.
"""

from __future__ import annotations

from linerate.workload.vdbench.fsd.expand import FileWorkload, expand_files
from linerate.workload.vdbench.fsd.settings import read_file_rd, read_fsd, read_fwd

__all__ = ["FileWorkload", "expand_files", "read_file_rd", "read_fsd", "read_fwd"]
