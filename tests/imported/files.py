"""Result files as fio, vdbench, Iometer and diskspd write them, with figures that are easy to work out by hand."""

from __future__ import annotations

import json
from typing import Any

from linerate.report.iometer.columns import COLUMNS

NO_TIMES = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}


def fio_side(ios: int = 0, size: int = 0, runtime_ms: int = 0, **clat_ns: Any) -> dict[str, Any]:
    """A direction of fio 3.33; `clat_ns` are the keys of its table of times."""
    seconds = runtime_ms / 1000
    return {
        "io_bytes": size,
        "io_kbytes": size // 1024,
        "bw_bytes": int(size / seconds) if seconds else 0,
        "bw": int(size / seconds / 1024) if seconds else 0,
        "iops": ios / seconds if seconds else 0.0,
        "runtime": runtime_ms,
        "total_ios": ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": NO_TIMES,
        "clat_ns": clat_ns or NO_TIMES,
        "lat_ns": NO_TIMES,
    }


def fio_job(name: str, group: int = 0, **parts: Any) -> dict[str, Any]:
    """An entry of `jobs`; `options` are its job options."""
    options = parts.pop("options", {"rw": "randread", "bs": "4k", "iodepth": "8"})
    return {
        "jobname": name,
        "groupid": group,
        "error": 0,
        "eta": 0,
        "elapsed": 11,
        "job options": options,
        "read": fio_side(),
        "write": fio_side(),
        "trim": fio_side(),
        "job_runtime": 10000,
        "usr_cpu": 3.5,
        "sys_cpu": 9.25,
        **parts,
    }


READS = fio_side(
    30_000,
    122_880_000,
    10_000,
    min=50_000,
    max=9_000_000,
    mean=333_000.5,
    stddev=20_000.0,
    N=30_000,
    percentile={"50.000000": 300_000, "95.000000": 500_000, "99.000000": 1_000_000, "99.900000": 2_500_000},
)
"""30,000 reads of 4 KiB in 10 s: 3000 IOPS, 11.71875 MiB/s."""
WRITES = fio_side(
    10_000,
    81_920_000,
    10_000,
    min=10_000,
    max=12_000_000,
    mean=1_000_000.0,
    stddev=5000.0,
    N=10_000,
    percentile={"99.000000": 4_000_000},
)
"""10,000 writes of 8 KiB in 10 s: 1000 IOPS, 7.8125 MiB/s."""


def fio_document(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A whole document."""
    return {
        "fio version": "fio-3.33",
        "timestamp": 1_700_000_011,
        "timestamp_ms": 1_700_000_011_500,
        "time": "Tue Nov 14 22:13:31 2023",
        "global options": {"ioengine": "libaio", "direct": "1", "filename": "/dev/sdb"},
        "jobs": list(jobs),
        **more,
    }


def fio_text(*jobs: dict[str, Any], **more: Any) -> str:
    """The file."""
    return json.dumps(fio_document(*jobs, **more), indent=2) + "\n"


_FLAT = (
    *("Run", "Interval", "reqrate", "rate", "MB/sec", "bytes/io", "read%", "resp", "read_resp", "write_resp"),
    *("resp_max", "resp_std", "xfersize", "threads", "rdpct", "rhpct", "whpct", "seekpct", "lunsize"),
    *("version", "compratio", "dedupratio", "queue_depth"),
    *("cpu_used", "cpu_user", "cpu_kernel", "cpu_wait", "cpu_idle"),
)
_FLAT_VALUES: dict[str, str | int | float] = {
    "reqrate": 9_999_988.0,
    "bytes/io": 8192.0,
    "xfersize": 8192.0,
    "threads": 8.0,
    "rdpct": 70.0,
    "seekpct": 100.0,
    "lunsize": 10.0,
    "version": "vdbench50406",
    "compratio": 1.0,
    "cpu_used": 4.0,
    "cpu_user": 4.0,
    "cpu_kernel": 6.5,
    "cpu_wait": 0.0,
    "cpu_idle": 89.5,
}


def flat_line(clock: str, interval: str | int, run: str = "rd1", **values: str | float) -> str:
    """A line of vdbench's flat file: whole numbers as %10d, others as %10.4f, what is not known as n/a."""
    known = {**_FLAT_VALUES, "Run": run, "Interval": interval, **values}
    cells = ""
    for name in _FLAT:
        value = known.get(name, "n/a")
        cells += f"{value:10.4f} " if isinstance(value, float) else f"{value:>10} "
    return f"{clock:>12} {f'11/21/2026-{clock[:8]}-UTC ':>24}{cells}"


def flat_text(*lines: str) -> str:
    """The file."""
    head = f"{'tod':>12} {'timestamp':>23} " + "".join(f"{name:>10} " for name in _FLAT)
    top = [
        "<title>Vdbench output/flatfile.html</title><pre>",
        "*",
        "* Run             : Name of run from RD=",
        "* ",
    ]
    return "\n".join([*top, head, *lines]) + "\n"


MIXED = {
    "rate": 2000.0,
    "MB/sec": 15.625,
    "read%": 70.0,
    "resp": 2.5,
    "read_resp": 3.0,
    "write_resp": 4 / 3,
    "resp_max": 40.25,
    "resp_std": 0.75,
}
"""2000 I/Os of 8 KiB per second."""
FLAT = flat_text(
    flat_line("10:00:05.012", 1, **MIXED),
    flat_line("10:00:10.003", 2, **MIXED),
    flat_line("10:00:15.001", 3, **MIXED),
    flat_line("10:00:15.004", "avg_2-3", **MIXED),
)
"""Intervals of 5 s, the first of them warm-up."""

IOMETER_2006 = (
    *("Target Type", "Target Name", "Access Specification Name", "# Managers", "# Workers", "# Disks"),
    *("IOps", "Read IOps", "Write IOps", "MBps", "Read MBps", "Write MBps"),
    *("Transactions per Second", "Connections per Second"),
    *("Average Response Time", "Average Read Response Time", "Average Write Response Time"),
    *("Maximum Response Time", "Maximum Read Response Time", "Maximum Write Response Time"),
    *("Errors", "Read Errors", "Write Errors", "Bytes Read", "Bytes Written", "Read I/Os", "Write I/Os"),
    *("Queue Depth", "% CPU Utilization", "% Privileged Time"),
)
"""Columns that the version of 2006 has as well; not all of them."""
ALL: dict[str, str] = {
    "Target Type": "ALL",
    "Target Name": "All",
    "Access Specification Name": "8K; 75% Read",
    "# Managers": "1",
    "# Workers": "2",
    "# Disks": "4",
    "IOps": "1600.000000",
    "Read IOps": "1200.000000",
    "Write IOps": "400.000000",
    "MBps": "12.500000",
    "MBps (Decimal)": "13.107200",
    "Average Response Time": "5.000000",
    "Average Read Response Time": "6.000000",
    "Average Write Response Time": "2.000000",
    "Maximum Response Time": "80.500000",
    "Maximum Read Response Time": "80.500000",
    "Maximum Write Response Time": "30.000000",
    "Errors": "3",
    "Read Errors": "2",
    "Write Errors": "1",
    "Bytes Read": "294912000",
    "Bytes Written": "98304000",
    "Read I/Os": "36000",
    "Write I/Os": "12000",
    "Queue Depth": "2",
    "% CPU Utilization": "12.250000",
    "% Privileged Time": "7.500000",
}
"""48,000 I/Os of 8 KiB in 30 s."""


def iometer_text(*rows: dict[str, str], columns: tuple[str, ...] = COLUMNS, version: str = "1.1.0") -> str:
    """A result file with a block for each row ALL."""
    lines = ["'Test Type,Test Description", "0,night run", "'Version", version]
    lines += ["'Time Stamp", "2026-11-21 09:30:00:250"]
    for number, row in enumerate(rows, start=1):
        lines += ["'Access specifications", "'Access specification name,default assignment"]
        lines += [
            f"{row['Access Specification Name']},0",
            "'size,% of size,% reads,% random,delay,burst,align,reply",
        ]
        lines += ["8192,100,75,100,0,1,0,0", "'End access specifications", "'Results"]
        lines += ["'" + ",".join(columns), ",".join(row.get(name, "") for name in columns)]
        manager = {**row, "Target Type": "MANAGER", "Target Name": "LOADHOST"}
        lines += [",".join(manager.get(name, "") for name in columns)]
        lines += ["'Time Stamp", f"2026-11-21 09:{30 + number}:00:250"]
    return "\r\n".join([*lines, "'End Test"]) + "\r\n"


DISKSPD = """\
<Results>
  <System>
    <ComputerName>LOADHOST</ComputerName>
    <Tool>
      <Version>2.2.0</Version>
      <VersionDate>2024/6/3</VersionDate>
    </Tool>
    <RunTime>2026/11/21 09:30:00 UTC</RunTime>
  </System>
  <Profile>
    <TimeSpans>
      <TimeSpan>
        <Duration>20</Duration>
        <Targets>
          <Target>
            <Path>E:\\t.dat</Path>
            <BlockSize>65536</BlockSize>
            <RequestCount>4</RequestCount>
            <WriteRatio>25</WriteRatio>
            <ThreadsPerFile>2</ThreadsPerFile>
          </Target>
        </Targets>
      </TimeSpan>
    </TimeSpans>
  </Profile>
  <TimeSpan>
    <TestTimeSeconds>20.00</TestTimeSeconds>
    <ThreadCount>2</ThreadCount>
    <RequestCount>0</RequestCount>
    <ProcCount>4</ProcCount>
    <CpuUtilization>
      <CPU><Id>0</Id><UsagePercent>90.00</UsagePercent></CPU>
      <Average>
        <UsagePercent>22.50</UsagePercent>
        <UserPercent>2.50</UserPercent>
        <KernelPercent>20.00</KernelPercent>
        <IdlePercent>77.50</IdlePercent>
      </Average>
    </CpuUtilization>
LATENCY    <Thread>
      <Id>0</Id>
      <Target>
        <Path>E:\\t.dat</Path>
        <BytesCount>655360000</BytesCount>
        <FileSize>1073741824</FileSize>
        <IOCount>10000</IOCount>
        <ReadBytes>491520000</ReadBytes>
        <ReadCount>7500</ReadCount>
        <WriteBytes>163840000</WriteBytes>
        <WriteCount>2500</WriteCount>
      </Target>
    </Thread>
    <Thread>
      <Id>1</Id>
      <Target>
        <Path>E:\\t.dat</Path>
        <BytesCount>655360000</BytesCount>
        <FileSize>1073741824</FileSize>
        <IOCount>10000</IOCount>
        <ReadBytes>491520000</ReadBytes>
        <ReadCount>7500</ReadCount>
        <WriteBytes>163840000</WriteBytes>
        <WriteCount>2500</WriteCount>
      </Target>
    </Thread>
  </TimeSpan>
</Results>"""
"""Two threads with 20,000 I/Os of 64 KiB in 20 s together."""
_LATENCY = """\
    <Latency ReadHistoBuckets="9" WriteHistoBuckets="9" TotalHistoBuckets="9">
      <AverageReadMilliseconds>8.000</AverageReadMilliseconds>
      <ReadLatencyStdev>1.500</ReadLatencyStdev>
      <AverageWriteMilliseconds>4.000</AverageWriteMilliseconds>
      <WriteLatencyStdev>0.500</WriteLatencyStdev>
      <AverageTotalMilliseconds>7.000</AverageTotalMilliseconds>
      <LatencyStdev>2.250</LatencyStdev>
      <Bucket>
        <Percentile>0</Percentile>
        <ReadMilliseconds>0.100</ReadMilliseconds>
        <WriteMilliseconds>0.200</WriteMilliseconds>
        <TotalMilliseconds>0.100</TotalMilliseconds>
      </Bucket>
      <Bucket>
        <Percentile>99</Percentile>
        <ReadMilliseconds>20.000</ReadMilliseconds>
        <WriteMilliseconds>10.000</WriteMilliseconds>
        <TotalMilliseconds>19.500</TotalMilliseconds>
      </Bucket>
      <Bucket>
        <Percentile>99.9</Percentile>
        <ReadMilliseconds>30.000</ReadMilliseconds>
        <WriteMilliseconds>15.000</WriteMilliseconds>
        <TotalMilliseconds>29.000</TotalMilliseconds>
      </Bucket>
      <Bucket>
        <Percentile>100</Percentile>
        <ReadMilliseconds>55.500</ReadMilliseconds>
        <WriteMilliseconds>44.000</WriteMilliseconds>
        <TotalMilliseconds>55.500</TotalMilliseconds>
      </Bucket>
    </Latency>
"""
DISKSPD_L = DISKSPD.replace("LATENCY", _LATENCY)
"""As with -L."""
DISKSPD_PLAIN = DISKSPD.replace("LATENCY", "")
"""As without."""
