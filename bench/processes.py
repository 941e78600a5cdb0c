"""The processes that are measured: started, pinned to a core, asked for their CPU time, ended by their own handle."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
SERVER_CPU = 0
CLIENT_CPU = 1
IQN = "iqn.2026-11.lab.linerate:bench"
TOUCHED_WITHIN_S = 60.0
SMB_USER = "nobody"
SMB_PASSWORD = "secret-of-the-bench"
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Shape:
    """What is moved: `volumes` with `outstanding` I/Os of `size_bytes` each in flight."""

    name: str
    size_bytes: int
    outstanding: int
    volumes: int = 1
    read_percent: int = 100
    random_percent: int = 100
    wait: str = "block"
    session: str = "own"
    data_digest: str = "none"
    client_cpus: tuple[int, ...] = (CLIENT_CPU,)
    """CPUs of the client, with a worker on each."""
    smb: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """One measurement. CPU figures are microseconds per I/O; polls that found nothing are not in the client's."""

    iops: float
    mb_s: float
    server_cpu_us: float
    client_cpu_us: float
    client_polled: float = 0.0
    """Share of the time that the client's polls took which found nothing."""


def pinned(cpus: int | Sequence[int], arguments: list[str], **options: Any) -> subprocess.Popen[str]:
    """Start a process that may run on one CPU, or on some, only."""
    listed = str(cpus) if isinstance(cpus, int) else ",".join(map(str, cpus))
    return subprocess.Popen(["taskset", "-c", listed, *arguments], text=True, **options)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    """Return a port of 127.0.0.1 that was free a moment ago, for peers that cannot choose one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def write_json(directory: Path, value: object) -> str:
    """Write a file for one process to read."""
    descriptor, path = tempfile.mkstemp(suffix=".json", dir=directory)
    with os.fdopen(descriptor, "w") as file:
        json.dump(value, file)
    return path


class Server:
    """A served SAN: its process and where its volumes are."""

    def __init__(self, process: subprocess.Popen[str], urls: list[str]) -> None:
        """Keep the process and one URL per volume."""
        self.process = process
        self.urls = urls

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.process.pid


@contextmanager
def array(
    directory: Path, shape: Shape, volume_bytes: int, cpus: Sequence[int] = (SERVER_CPU,)
) -> Iterator[Server]:
    """Our array with memory volumes that have been written once; it waits as the shape says. A worker per CPU."""
    volumes = [
        {"lun": lun, "name": f"v{lun}", "kind": "memory", "size_bytes": volume_bytes}
        for lun in range(shape.volumes)
    ]
    with serve(directory, volumes, wait=shape.wait, cpus=cpus) as server:
        fill(directory, server, volume_bytes)
        yield server


def raid_storage(level: str, disks: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Describe one RAID set named r and its disks, of which `disks` describes all, with `count`."""
    names = [f"{disks['name']}{number}" for number in range(disks["count"])]
    raid_set = {"name": "r", "level": level, "disks": names, "initialise": "assume_clean", **options}
    return {"disks": [disks], "raid_sets": [raid_set]}


@contextmanager
def raid(directory: Path, level: str, disks: dict[str, Any], **options: Any) -> Iterator[Server]:
    """Our array with one RAID set as its volume, written once. `disks` describes all of them, with `count`."""
    volumes = [{"lun": 0, "name": "v0", "kind": "raid"}]
    with serve(directory, volumes, raid_storage(level, disks, **options)) as server:
        fill(directory, server, disks["count"] * disks["size_bytes"])
        yield server


@contextmanager
def serve(
    directory: Path,
    volumes: list[dict[str, Any]],
    storage: dict[str, Any] | None = None,
    wait: str = "block",
    cpus: Sequence[int] = (SERVER_CPU,),
) -> Iterator[Server]:
    """Our array, with a worker on each CPU."""
    config = {
        "portals": ["127.0.0.1:0"],
        "workers": len(cpus),
        "cpus": list(cpus),
        "wait": wait,
        "storage": storage or {},
        "targets": [{"name": IQN, "volumes": volumes}],
    }
    arguments = [str(RELEASE / "bench-array"), write_json(directory, config)]
    process = pinned(cpus, arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        portal = json.loads(process.stdout.readline())["portals"][0]
        yield Server(process, [f"iscsi://{portal}/{IQN}/{volume['lun']}" for volume in volumes])
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)


def fill(directory: Path, server: Server, volume_bytes: int) -> None:
    """Touch every page of every volume: what was never written costs nothing to read."""
    whole = Shape("fill", min(262_144, volume_bytes), 4, len(server.urls), 0, 0, session="shared")
    spec = run_spec(whole, server.urls, seconds=60.0)
    spec["limits"] = {"written_bytes": volume_bytes * len(server.urls)}
    load(directory, spec)


def wait_until_touched(server: Server) -> None:
    """Wait for the thread that touches an array's memory ahead: it takes time of the array's CPU."""
    deadline_s = time.monotonic() + TOUCHED_WITHIN_S
    while any(
        name.read_text() == "touch-ahead\n" for name in Path(f"/proc/{server.pid}/task").glob("*/comm")
    ):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"the array still touches memory after {TOUCHED_WITHIN_S:.0f} s")
        time.sleep(0.05)


def run_spec(shape: Shape, urls: list[str], seconds: float) -> dict[str, Any]:
    """Build the order that the load engine gets."""
    names = [f"sd{number}" for number in range(len(urls))]
    volumes = [
        {
            "name": name,
            "url": url,
            "outstanding": shape.outstanding,
            "session": shape.session,
            **protocol_options(shape, url),
        }
        for name, url in zip(names, urls, strict=True)
    ]
    stream = {
        "name": "wd",
        "volumes": names,
        "sizes": {"kind": "mix", "parts": [[shape.size_bytes, 100.0]]},
        "read_percent": float(shape.read_percent),
        "random_percent": float(shape.random_percent),
    }
    return {
        "version": 1,
        "elapsed_s": seconds,
        "workers": len(shape.client_cpus),
        "cpus": list(shape.client_cpus),
        "wait": shape.wait,
        "volumes": volumes,
        "streams": [stream],
    }


def protocol_options(shape: Shape, url: str) -> dict[str, Any]:
    """Build what the order says about the protocol of one volume."""
    if url.startswith("smb:"):
        return {"user": SMB_USER, "secret": SMB_PASSWORD, "smb": dict(shape.smb)}
    return {"iscsi": {"data_digest": shape.data_digest}}


def load(directory: Path, spec: dict[str, Any], started: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Run the load engine without Python and return what it reports. `started` is called before the first I/O."""
    arguments = [str(RELEASE / "bench-load"), write_json(directory, spec)]
    process = pinned(spec["cpus"], arguments, stdout=subprocess.PIPE)
    assert process.stdout is not None
    if process.stdout.readline():
        started()
    output, _ = process.communicate(timeout=spec["elapsed_s"] + 60)
    if process.returncode != 0:
        raise RuntimeError(f"bench-load failed with status {process.returncode}")
    report: dict[str, Any] = json.loads(output)
    if report["errors"]:
        raise RuntimeError(f"bench-load: {report['errors']} I/Os failed")
    return report


def measure(directory: Path, shape: Shape, server: Server, seconds: float) -> Measure:
    """Our load engine and initiator against a server."""
    before = 0.0

    def started() -> None:
        # Logins are no part of an I/O.
        nonlocal before
        before = cpu_seconds(server.pid)

    report = load(directory, run_spec(shape, server.urls, seconds), started)
    server_cpu_s = cpu_seconds(server.pid) - before
    ios = max(report["ios"], 1)
    return Measure(
        iops=report["ios"] / report["seconds"],
        mb_s=report["bytes"] / report["seconds"] / 1e6,
        server_cpu_us=server_cpu_s / ios * 1e6,
        client_cpu_us=report["cpu_s"] / ios * 1e6,
        client_polled=report["polled_s"] / report["seconds"],
    )


def measure_raw(
    shape: Shape, seconds: float, region_bytes: int, work_us: int = 0, own_buffers: bool = False
) -> Measure:
    """Measure the limit: the same bytes as a bare request/response pair.

    `work_us`: how long the server computes before each answer; then it sends them one by one.
    `own_buffers`: each write in flight is sent from a buffer of its own.
    """
    common = ["--connections", str(shape.volumes), "--region-bytes", str(region_bytes), "--wait", shape.wait]
    serving = [str(RELEASE / "rawtcp-server"), *common, "--work-us", str(work_us)]
    server = pinned(SERVER_CPU, serving, stdout=subprocess.PIPE)
    assert server.stdout is not None
    port = server.stdout.readline().split()[1]
    before = cpu_seconds(server.pid)
    client = [str(RELEASE / "rawtcp-client"), *common, "--port", port, "--seconds", str(seconds)]
    client += ["--depth", str(shape.outstanding), "--len-bytes", str(shape.size_bytes)]
    client += ["--read-percent", str(shape.read_percent)]
    client += ["--own-buffers"] if own_buffers else []
    process = pinned(CLIENT_CPU, client, stdout=subprocess.PIPE)
    # The server ends with its client and takes its CPU time along: it is read while both run.
    time.sleep(seconds * 0.8)
    server_cpu_s = (cpu_seconds(server.pid) - before) / 0.8
    output, _ = process.communicate(timeout=seconds + 30)
    server.communicate(timeout=30)
    report = json.loads(output)
    ios = max(report["ios"], 1)
    iops = report["ios"] / report["seconds"]
    return Measure(iops, iops * shape.size_bytes / 1e6, server_cpu_s / ios * 1e6, report["cpu_s"] / ios * 1e6)


@contextmanager
def tgt(volume_bytes: int, folder: Path = SHARED_MEMORY, flags: str = "") -> Iterator[Server | None]:
    """Run tgt with one LUN on a new file, which it opens with `flags`; nothing if it is not installed."""
    if not (shutil.which("tgtd", path="/usr/sbin") and shutil.which("tgtadm", path="/usr/sbin")):
        yield None
        return
    port = free_port()
    control = str(port % 32_768)  # tgt's control "port" is a number below 32768
    file = folder / f"linerate-bench-{port}"
    file.write_bytes(b"\x5a" * volume_bytes)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    arguments = ["/usr/sbin/tgtd", "-f", "-C", control, "--iscsi", f"portal=127.0.0.1:{port}"]
    process = pinned(SERVER_CPU, arguments, **quiet)

    def admin(*words: str) -> bool:
        command = ["/usr/sbin/tgtadm", "-C", control, "--lld", "iscsi", *words]
        return subprocess.run(command, check=False, **quiet).returncode == 0

    try:
        deadline = time.monotonic() + 10
        while not admin("--op", "new", "--mode", "target", "--tid", "1", "-T", IQN):
            if time.monotonic() > deadline:
                raise RuntimeError("tgtd does not come up")
            time.sleep(0.1)
        unit = ["--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", str(file)]
        admin(*unit, *(["--bsoflags", flags] if flags else []))
        admin("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        yield Server(process, [f"iscsi://127.0.0.1:{port}/{IQN}/1"])
    finally:
        process.kill()
        process.wait()
        file.unlink()
