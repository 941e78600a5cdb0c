"""Two hosts and an array, each in a network namespace of its own, on this machine.

Meant to run as `unshare --user --map-root-user --net python -m tests.load.two_hosts`, so that nothing needs
root and nothing is left behind: prints what a run over all of them found, as one JSON object.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from linerate import _core
from linerate.array import ArrayConfig, EmbeddedArray
from linerate.array.config import TargetConfig, VolumeConfig
from linerate.errors import LinerateError
from linerate.results import interval_from_core
from linerate.workload.spec import RunSpec, SessionSpec, StreamSpec, VolumeSpec

TIMEOUT_S = 30.0
HOSTS = ("h1", "h2")
TARGET = "iqn.2026-11.lab.linerate:hosts"


def _ip(*words: str, netns: Path | None = None) -> None:
    inside = ["nsenter", f"--net={netns}"] if netns else []
    subprocess.run([*inside, "ip", *words], check=True)


@contextlib.contextmanager
def host(number: int) -> Iterator[Path]:
    """A namespace with one port, cabled to this one: 10.9.N.2 and .3 there, 10.9.N.1 here."""
    ours = os.readlink("/proc/self/ns/net")
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) as holder:
        netns = Path(f"/proc/{holder.pid}/ns/net")
        deadline = time.monotonic() + TIMEOUT_S
        while os.readlink(netns) == ours:
            assert time.monotonic() < deadline, "unshare made no namespace"
            time.sleep(0.005)
        _ip("link", "add", f"h{number}", "type", "veth", "peer", "name", "p0", "netns", str(holder.pid))
        _ip("address", "add", f"10.9.{number}.1/24", "dev", f"h{number}")
        _ip("link", "set", f"h{number}", "up")
        for last in (2, 3):
            _ip("address", "add", f"10.9.{number}.{last}/24", "dev", "p0", netns=netns)
        _ip("link", "set", "p0", "up", netns=netns)
        yield netns


def spec(volumes: list[VolumeSpec]) -> RunSpec:
    """Half a second of small reads and writes on all of them."""
    stream = StreamSpec(name="s", volumes=tuple(volume.name for volume in volumes), read_percent=50)
    return RunSpec(name="hosts", elapsed_s=0.5, interval_s=0.25, volumes=tuple(volumes), streams=(stream,))


def run(volumes: list[VolumeSpec]) -> dict[str, Any]:
    """Facts of the run, and the I/Os of each volume."""
    core = _core.Run.start(spec(volumes).seam_json())
    facts: dict[str, Any] = core.facts()
    inside = [os.readlink(f"/proc/self/task/{thread['thread_id']}/ns/net") for thread in facts["threads"]]
    ios = Counter[str]()
    for row in interval_from_core(core.finish().total).rows:
        ios[row.volume] += row.ios
    return {"facts": facts, "threads_inside": inside, "ios": ios}


def refused(volumes: list[VolumeSpec]) -> list[str]:
    """Class and message of the error that starting such a run ends in."""
    try:
        _core.Run.start(spec(volumes).seam_json())
    except LinerateError as error:
        return [type(error).__name__, error.message]
    return []


def main() -> None:
    """Builds, runs, tells."""
    with contextlib.ExitStack() as stack:
        namespaces = [stack.enter_context(host(number)) for number in (1, 2)]
        disks = tuple(VolumeConfig(lun=lun, name=f"d{lun}", size_bytes=1 << 20) for lun in range(4))
        portals = tuple(f"10.9.{number}.1:0" for number in (1, 2))
        array = stack.enter_context(
            EmbeddedArray(ArrayConfig(portals=portals, targets=(TargetConfig(name=TARGET, volumes=disks),)))
        )

        def volume(lun: int, at: int, portal: int | None = None, **more: Any) -> VolumeSpec:
            url = array.url(lun, portal=at if portal is None else portal)
            return VolumeSpec(name=f"v{lun}", url=url, netns=str(namespaces[at]), **more)

        second = SessionSpec(source_address="10.9.1.3")
        absent = SessionSpec(source_address="192.0.2.7", login_timeout_s=0.3, replacement_timeout_s=0.1)
        impatient = SessionSpec(login_timeout_s=0.3, replacement_timeout_s=0.1)
        found = run([volume(0, 0), volume(1, 1), volume(2, 0, iscsi=second), volume(3, 1)])
        found |= {
            "hosts": [os.readlink(netns) for netns in namespaces],
            "main": os.readlink(f"/proc/self/task/{threading.get_native_id()}/ns/net"),
            "here": os.readlink("/proc/self/ns/net"),
            "unreachable": refused([volume(0, 0, portal=1, iscsi=impatient)]),
            "no_source": refused([volume(0, 0, iscsi=absent)]),
            "no_namespace": refused([volume(0, 0).model_copy(update={"netns": "/proc/self/stat"})]),
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
