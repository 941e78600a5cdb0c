"""Where the load runs: in this process, on the hosts of `--hosts`, or in virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linerate.cli.job.virtual_time import VirtualTime
    from linerate.cluster import Cluster, Endpoint, PortRange
    from linerate.run import Loader


@dataclass(frozen=True, slots=True)
class Hosts:
    """Checked, and not yet asked anything."""

    places: tuple[Endpoint, ...]
    address: str | None
    ports: PortRange | None

    @classmethod
    def of(
        cls, hosts: str | None, python: str | None, address: str | None, ports: str | None
    ) -> Hosts | None:
        """As the options say; None without --hosts. Raises UserError."""
        from linerate.cluster import PortRange, ssh_endpoints
        from linerate.errors import UserError

        if hosts is None:
            if address is not None or ports is not None:
                named = "--hosts-address" if address is not None else "--hosts-ports"
                raise UserError(f"{named} goes with --hosts", "name the hosts, or leave it out")
            return None
        wanted = PortRange.parse(ports) if ports is not None else None
        return cls(ssh_endpoints(hosts.split(","), python), address, wanted)

    def cluster(self) -> Cluster:
        """Starts a worker on each of them; use it in a `with` block. Raises LinerateError."""
        from linerate.cluster import Cluster

        return Cluster(self.places, address=self.address, ports=self.ports)


@dataclass(frozen=True, slots=True)
class Where:
    """Where the load runs: in this process unless something else is asked for."""

    virtual_time: VirtualTime | None
    hosts: Hosts | None

    @classmethod
    def of(
        cls,
        virtual_time: Path | None,
        hosts: str | None,
        python: str | None,
        address: str | None,
        ports: str | None,
    ) -> Where:
        """As the options say. Raises UserError."""
        from linerate.cli.job.virtual_time import VirtualTime

        return cls(VirtualTime.of(virtual_time, hosts), Hosts.of(hosts, python, address, ports))

    def targets(self, targets: Sequence[str], maps: Sequence[str]) -> Sequence[str]:
        """Those of the command line; in virtual time without any, the volumes of the array."""
        return self.virtual_time.targets(targets, maps) if self.virtual_time is not None else targets

    @contextmanager
    def loader(self) -> Iterator[Loader]:
        """What looks at volumes and starts loads there."""
        from linerate.run import Here

        if self.virtual_time is not None:
            yield self.virtual_time
        elif self.hosts is None:
            yield Here()
        else:
            with self.hosts.cluster() as cluster:
                yield cluster
