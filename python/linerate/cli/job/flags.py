"""The flags of `run`, by name: type, place on the command line, and help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


class Wait(StrEnum):
    """How load threads wait."""

    AUTO = "auto"
    BLOCK = "block"
    SPIN = "spin"


class Driver(StrEnum):
    """How I/O reaches the kernel."""

    AUTO = "auto"
    IO_URING = "io_uring"
    EPOLL = "epoll"


Words = Annotated[
    list[str] | None,
    Argument(
        metavar="[FILE...] [NAME=VALUE...]",
        help="Workload files with values for their $NAMEs, a preset, or a study.",
    ),
]
Preset = Annotated[str | None, Option(metavar="NAME", help="dell-nic, dlink, chelsio, anvil, ...")]

_TARGET = "URL of the volumes: once for all ({n} = volume number), or once for each."
Targets = Annotated[list[str] | None, Option(metavar="URL", help=_TARGET)]
Maps = Annotated[
    list[str] | None, Option("--map", metavar="SD=URL", help="URL of one volume; sd* for several.")
]
Size = Annotated[str | None, Option(metavar="SIZE", help="Part of each volume that is used: 8g.")]
Volumes = Annotated[
    int | None, Option(metavar="N", min=1, help="Use only the first N volumes of the workload.")
]
Create = Annotated[bool, Option("--create", help="Create or extend files to --size.")]

Elapsed = Annotated[float | None, Option(metavar="S", help="Measured seconds of every step.")]
Warmup = Annotated[float | None, Option(metavar="S", help="Seconds before measuring.")]
Interval = Annotated[float | None, Option(metavar="S", help="Seconds per interval.")]
Outstanding = Annotated[int | None, Option(metavar="N", help="I/Os in flight per volume.")]
_SCALE = "Replay a trace with its times multiplied by this: 0.5 is twice as fast."
TimeScale = Annotated[float | None, Option(metavar="X", help=_SCALE)]
Seed = Annotated[int | None, Option(metavar="N", help="Same seed, same sequence of I/Os.")]
Verify = Annotated[bool, Option("--verify", help="Stamp every written block and check it.")]
Strict = Annotated[bool, Option("--strict", help="Read a vdbench file exactly as vdbench does.")]

_SET = "An option of the iSCSI sessions; smb.KEY, multipath.KEY and trace.KEY: of SMB, multipath or a replay."
Settings = Annotated[list[str] | None, Option("--set", metavar="iscsi.KEY=VALUE", help=_SET)]
_PATH = 'A path of every iSCSI volume, once for each: "10.1.0.1 -> 10.1.0.10"; "p1 -> 10.1.1.10 standby".'
Paths = Annotated[list[str] | None, Option("--path", metavar="PATH", help=_PATH)]
_IMPORT = "Policy, failback and times as this multipath.conf says."
ImportMultipath = Annotated[Path | None, Option("--import-multipath", metavar="FILE", help=_IMPORT)]
WaitMode = Annotated[
    Wait | None,
    Option(
        "--io-wait", help="How load threads wait for I/O. auto: poll shortly, then sleep. spin: do not sleep."
    ),
]
WaitForLab = Annotated[
    bool, Option("--wait", help="If another laboratory is busy on this machine, wait until it has ended.")
]
DriverName = Annotated[Driver | None, Option(help="How I/O reaches the kernel.")]
Cpus = Annotated[str | None, Option(metavar="LIST", help="Pin load threads: 0,2-3.")]
Workers = Annotated[int | None, Option(metavar="N", help="Load threads.")]

_OVERWRITE = (
    "Overwrite this volume: name, path or URL; all: every volume without a signature that is not in use."
)
Overwrite = Annotated[list[str] | None, Option("--overwrite", metavar="NAME", help=_OVERWRITE)]
_REPLACE = f"{_OVERWRITE} Or replace this result of another form: its file or folder."
OverwriteOrReplace = Annotated[list[str] | None, Option("--overwrite", metavar="NAME", help=_REPLACE)]

DryRun = Annotated[bool, Option("--dry-run", help="Show the plan and how long it takes; start nothing.")]
Quick = Annotated[
    bool,
    Option(
        "--quick", help="A study with shorter times and fewer blocks; says how much precision that costs."
    ),
]
Blocks = Annotated[
    int | None, Option(metavar="N", min=1, help="Number of blocks of a study, instead of the file's.")
]

_VIRTUAL = "Compute the runs on the modelled disks of this array file: no network, minutes in seconds."
VirtualTime = Annotated[Path | None, Option(metavar="ARRAYFILE", help=_VIRTUAL)]

_HOSTS = "Load from these hosts at once, by SSH: [user@]host,..."
Hosts = Annotated[str | None, Option(metavar="LIST", help=_HOSTS)]
_PYTHON = "The Python with Linerate on --hosts; default: what `hosts install` brought there, else python3."
HostsPython = Annotated[str | None, Option(metavar="PATH", help=_PYTHON)]
HostsAddress = Annotated[str | None, Option(metavar="IP", help="This machine, as --hosts reach it.")]
_PORTS = "Listen on these ports, here and on --hosts: FIRST-LAST; default: free ones."
HostsPorts = Annotated[str | None, Option(metavar="PORTS", help=_PORTS)]

Output = Annotated[Path | None, Option(metavar="DIR", help="The run directory.")]
NoReport = Annotated[bool, Option("--no-report", help="No HTML report: `linerate report` makes it later.")]
VdbenchOutput = Annotated[Path | None, Option(metavar="DIR", help="Also write vdbench's report files.")]
FioJson = Annotated[Path | None, Option(metavar="FILE", help="Also write the results as fio's JSON.")]
IometerCsv = Annotated[Path | None, Option(metavar="FILE", help="Also write the results as Iometer's CSV.")]
DiskspdXml = Annotated[Path | None, Option(metavar="FILE", help="Also write the results as diskspd's XML.")]
Json = Annotated[bool, Option("--json", help="One JSON object per line (`linerate schema events`).")]
