"""Where the load runs: in this process, on the hosts of `--hosts` or of the workload file, or in virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linerate.cli.job.virtual_time import VirtualTime
    from linerate.cluster import Cluster, Endpoint, PortRange
    from linerate.run import Loader
    from linerate.workload import RunPlan
    from linerate.workload.hosts import LoadHosts


@dataclass(frozen=True, slots=True)
class Reach:
    """How hosts are reached, those of --hosts and those of a workload file."""

    python: str | None
    address: str | None
    ports: PortRange | None

    @classmethod
    def of(cls, python: str | None, address: str | None, ports: str | None) -> Reach:
        """From the options. Raises UserError."""
        if ports is None:
            return cls(python, address, None)
        from linerate.cluster import PortRange

        return cls(python, address, PortRange.parse(ports))

    def refuse_alone(self) -> None:
        """Raises UserError if it was asked for without hosts."""
        from linerate.errors import UserError

        if self.address is not None or self.ports is not None:
            named = "--hosts-address" if self.address is not None else "--hosts-ports"
            raise UserError(f"{named} goes with --hosts", "name the hosts, or leave it out")


@dataclass(frozen=True, slots=True)
class Hosts:
    """Checked, and not yet asked anything."""

    places: tuple[Endpoint, ...]
    reach: Reach
    addresses: tuple[str, ...] = ()
    """Of `places`, as the command line gives them."""
    dealt: LoadHosts | None = None
    """What the workload file deals to them; None: each runs all of it."""

    @classmethod
    def of(cls, hosts: str | None, reach: Reach) -> Hosts | None:
        """Those of --hosts. Raises UserError."""
        from linerate.cluster import ssh_endpoints

        if hosts is None:
            return None
        addresses = tuple(hosts.split(","))
        return cls(ssh_endpoints(addresses, reach.python), reach, addresses)

    @classmethod
    def of_file(cls, hosts: LoadHosts, reach: Reach) -> Hosts:
        """Those of a workload file."""
        from linerate.cluster import file_endpoints

        return cls(file_endpoints(hosts.hosts, reach.python), reach, dealt=hosts)

    def cluster(self) -> Cluster:
        """Starts a worker on each of them; use it in a `with` block. Raises LinerateError."""
        from linerate.cluster import Cluster

        are_here = self.dealt is not None and all(host.is_here for host in self.dealt.hosts)
        address = self.reach.address or ("127.0.0.1" if are_here else None)
        return Cluster(self.places, address=address, ports=self.reach.ports)


@dataclass(frozen=True, slots=True)
class Where:
    """Where the load runs: in this process unless something else is asked for."""

    virtual_time: VirtualTime | None
    hosts: Hosts | None
    reach: Reach

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

        reach = Reach.of(python, address, ports)
        return cls(VirtualTime.of(virtual_time, hosts), Hosts.of(hosts, reach), reach)

    def of_plan(self, plan: RunPlan) -> Where:
        """With the hosts that the workload file names. Raises UserError where the command line says otherwise."""
        from linerate.errors import UserError

        if self.hosts is not None and any(run.trace is not None for run in plan.steps()):
            raise UserError(f"--hosts, and {plan.name} is a trace", "a trace is replayed from this host only")
        if plan.hosts is None:
            if self.hosts is None:
                self.reach.refuse_alone()
            return self._of_managers(plan)
        labels = ", ".join(host.label for host in plan.hosts.hosts)
        if self.hosts is not None:
            raise UserError(
                f"--hosts, and {plan.name} names its hosts itself ({labels})",
                "leave --hosts out, or the hd= lines; a host of another name goes into ~/.ssh/config",
            )
        if self.virtual_time is not None:
            raise UserError(
                f"--virtual-time, and {plan.name} names hosts ({labels})",
                "in virtual time there are no hosts: leave the hd= lines out",
            )
        return replace(self, hosts=Hosts.of_file(plan.hosts, self.reach))

    def _of_managers(self, plan: RunPlan) -> Where:
        """As many hosts as the file has managers: each of them does what one did. Raises UserError."""
        from linerate.errors import UserError

        if self.hosts is None or plan.managers is None:
            return self
        labels = [host.label for host in plan.managers.hosts]
        if len(labels) != len(self.hosts.addresses):
            raise UserError(
                f"--hosts names {len(self.hosts.addresses)} hosts, and {plan.name} has {len(labels)} managers "
                f"({', '.join(labels)})",
                "name a host for each manager, in their order; without --hosts this host makes the load of all",
            )
        return replace(self, hosts=Hosts.of_file(plan.managers.at(self.hosts.addresses), self.reach))

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
                yield cluster if self.hosts.dealt is None else cluster.dealt(self.hosts.dealt)
