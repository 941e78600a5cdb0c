"""Two arrays that replicate are killed again and again, one or both: copies go on, each of one instant.

`LINERATE_KILLS` says how often (default 4).
"""

from __future__ import annotations

import random
import struct
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from linerate.array.control import ControlClient, find
from linerate.array.control.identity import own_identity
from linerate.errors import LinerateError

from tests.array.killed.host import BLOCK_BYTES, Host
from tests.array.killed.test_one import KILLS
from tests.cli.conftest import TIMEOUT_S
from tests.support.serving import fine, free_ports, serve

pytestmark = pytest.mark.long

SECONDS_PER_KILL = 10.0
RING = 64
"""Blocks of each volume that are written, one after the other and round again."""
STRIDE = 640
"""Blocks from one of them to the next: each is in a page of its own."""
ARRAY = """\
name = "{name}"
portals = ["127.0.0.1:{portal}"]
[control]
identity = "{name}.identity"
partner_listen = "127.0.0.1:{partners}"
[[storage.disks]]
name = "d"
kind = "file"
path = "{name}.img"
size = "64m"
count = 4
[[storage.raid_sets]]
name = "r5"
level = "raid5"
disks = ["d"]
[[storage.pools]]
name = "p0"
raid_sets = ["r5"]
page = "256k"
[[targets]]
name = "iqn.2026-11.lab.linerate:{name}"
{volumes}
[[partners]]
name = "pair"
certificate = "{other}.pem"
control = "https://127.0.0.1:{other_partners}"
portal = "127.0.0.1:{other_portal}"
[[replications]]
name = "mail"
partner = "pair"
volumes = ["log", "data"]
pool = "p0"
interval = "1s"
keep = 2
"""
VOLUMES = "".join(
    f'[[targets.volumes]]\nlun = {lun}\nname = "{name}"\nkind = "pool"\npool = "p0"\nsize = "24m"\n'
    for lun, name in enumerate(("log", "data"))
)


class Site:
    """One of the two arrays: its file, and the process that serves it now."""

    def __init__(self, folder: Path, name: str, own: list[int], other: list[int], volumes: str) -> None:
        """Its partner's certificate has to be in the folder."""
        ports: dict[str, object] = {
            "portal": own[0],
            "partners": own[1],
            "other_portal": other[0],
            "other_partners": other[1],
        }
        ports["other"] = "b" if name == "a" else "a"
        self.name, self.portal = name, own[0]
        self.file = folder / f"{name}.toml"
        self.file.write_text(ARRAY.format(name=name, volumes=volumes, **ports), "ascii")
        self.process, _ = serve(self.file)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=TIMEOUT_S)

    def restart(self) -> None:
        self.process, _ = serve(self.file)

    def host(self) -> Host:
        return Host(self.portal, f"iqn.2026-11.lab.linerate:{self.name}")

    def newest_point_at(self) -> float:
        """The instant of the newest whole copy, by the wall clock; 0: there is none."""
        try:
            (mail,) = ControlClient.at(find(self.name)).report().replications
        except LinerateError:
            return 0.0
        return 0.0 if mail.lag_s is None else time.time() - mail.lag_s


def numbers(host: Host, lun: int) -> list[int]:
    """The contents of the ring of a volume."""
    return [struct.unpack(">Q", host.read(lun, at * STRIDE, 1)[:8])[0] for at in range(RING)]


def last_of(ring: list[int]) -> int:
    """The last number that was written. The ring holds what came before it, as far as it reaches, and nothing else."""
    last = max(ring)
    for at, found in enumerate(ring):
        expected = last - (last - at) % RING
        assert found == max(expected, 0), (
            f"place {at} holds {found}, not {expected}, and the last one is {last}"
        )
    return last


class Writer:
    """Writes 1, 2, 3, ... each to the log first and then, when that is acknowledged, to the data."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.acknowledged = 0
        """The last number that is in both."""
        self.sessions = 0
        self.fault: BaseException | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                with self.site.host() as host:
                    self.sessions += 1
                    self._write(host)
            except OSError:
                self._ends.wait(0.02)
            except BaseException as fault:  # told by the test, not by the thread
                self.fault = fault
                return

    def _write(self, host: Host) -> None:
        log, data = last_of(numbers(host, 0)), last_of(numbers(host, 1))
        assert self.acknowledged <= data <= log <= self.acknowledged + 1, (self.acknowledged, log, data)
        while not self._ends.is_set():
            number = self.acknowledged + 1
            block = struct.pack(">Q", number).ljust(BLOCK_BYTES, b".")
            for lun in (0, 1):
                host.write(lun, number % RING * STRIDE, block)
            self.acknowledged = number


def wait_for_a_copy(site: Site, since: float) -> None:
    """Until the site has a whole copy of an instant after `since`."""
    ends = time.monotonic() + TIMEOUT_S
    while site.newest_point_at() < since:
        assert time.monotonic() < ends, "copying does not go on"
        time.sleep(0.05)


@pytest.mark.timeout(120 + 2 * SECONDS_PER_KILL * KILLS)
def test_replication_goes_on_and_copies_are_of_one_instant(tmp_path: Path, state: Path) -> None:
    ports = free_ports(4)
    chance = random.Random(2)
    for name in ("a", "b"):
        own = own_identity(tmp_path / f"{name}.identity", name)
        (tmp_path / f"{name}.pem").write_text(own.pem, "ascii")
    with ExitStack() as stack:
        first = Site(tmp_path, "a", ports[:2], ports[2:], VOLUMES)
        stack.callback(lambda: first.kill())
        second = Site(tmp_path, "b", ports[2:], ports[:2], "")
        stack.callback(lambda: second.kill())
        writer = stack.enter_context(Writer(first))
        for kill in range(KILLS):
            victims = ([first], [second], [first, second])[kill % 3]
            time.sleep(chance.uniform(0.3, 2.0))
            for victim in victims:
                victim.kill()
            for victim in victims:
                victim.restart()
        acknowledged, now = writer.acknowledged, time.time()
        wait_for_a_copy(second, now)
        first.kill()
        writer.stop()
        assert writer.fault is None, writer.fault
        assert writer.sessions > KILLS // 3
        fine("array", "promote", "mail", "--array", "b", "--force", "--yes")
        with second.host() as host:
            log, data = last_of(numbers(host, 0)), last_of(numbers(host, 1))
        assert 0 <= log - data <= 1, "both volumes are as they were at one instant"
        assert acknowledged <= data <= writer.acknowledged + 1
        first.restart()
        with first.host() as host:
            log, data = last_of(numbers(host, 0)), last_of(numbers(host, 1))
        assert writer.acknowledged <= data <= log <= writer.acknowledged + 1
