"""The hosts that `--hosts` and the options beside it name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linerate.cluster import Cluster, Endpoint, PortRange


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
