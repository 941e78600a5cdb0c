"""Results as diskspd's XML (`diskspd -Rxml -L -D`, diskspd 2.2), for programs that read diskspd's.

One document per run, with a time span for each step: in `Profile` what was asked for, and in `Results` what was
measured. A thread is a queue of the run: a volume of a stream. Times are service times, from submit to complete.
`profile` has the first part, `spans` the second. docs/diskspd.md tells users the same.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from linerate.report.diskspd.elements import add
from linerate.report.diskspd.profile import add_profile
from linerate.report.diskspd.spans import add_time_span
from linerate.results import RunDirectory
from linerate.results.files import write_result

_VERSION, _VERSION_DATE = "2.2.0", "2024/6/3"
"""The version of diskspd whose form this is."""


def write_diskspd_xml(run: RunDirectory, path: Path) -> None:
    """Write the results of a run as one file; a file that is there is replaced. Raises HostError."""
    document = diskspd_document(run)
    ElementTree.indent(document)
    text = ElementTree.tostring(document, encoding="unicode", short_empty_elements=False)
    write_result(path, text.encode())


def diskspd_document(run: RunDirectory) -> ElementTree.Element:
    """The whole document."""
    manifest = run.manifest
    root = ElementTree.Element("Results")
    system = add(root, "System")
    add(system, "ComputerName", manifest.environment.get("host.name", ""))
    tool = add(system, "Tool")
    add(tool, "Version", f"{_VERSION} (Linerate {manifest.versions.get('linerate', '')})")
    add(tool, "VersionDate", _VERSION_DATE)
    at = manifest.started_at
    add(system, "RunTime", f"{at.year}/{at:%m/%d %H:%M:%S} UTC")
    add_profile(root, manifest.steps)
    for step in manifest.steps:
        add_time_span(root, run, step)
    return root
