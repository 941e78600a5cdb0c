"""A laboratory of real hosts: this machine, other hosts, or both, as the study file names them.

Settings of this machine are written through `linerate.host` under a journal in the study directory, those of
another host by a process that is started there (`hold`) and keeps its journal there: `linerate host restore` on a host
puts its own back if anything is killed. Each volume is loaded by the host that names it: in this process when there is
no other host, else by a worker on each (`linerate.cluster`). Links and switches
around the hosts cannot be changed from here: such settings are refused.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from linerate.cluster import PortRange, apportion
from linerate.errors import HostError, InternalError, UserError
from linerate.host import HostJournal, HostSettings, HostTarget, catalogue, unproven
from linerate.run import Here, Load
from linerate.settings import ARRAY, CPU, HOST, OTHER_SESSION, applied_by, is_of_topology
from linerate.study.laboratory.base import Measured, SetUp
from linerate.study.laboratory.measure import LaboratoryRun, measure, placed
from linerate.study.laboratory.places import loading, owners, place, placed_volume, reached
from linerate.study.laboratory.remote import RemoteSettings
from linerate.study.laboratory.shares import unfit_for
from linerate.study.model import RealHost, San, Settings, SettingValue, Study, Workload
from linerate.volumes import Cleared, Consent, Look, written
from linerate.workload import RunSpec
from linerate.workload.url import is_share

if TYPE_CHECKING:
    from linerate.cluster import Cluster

JOURNAL = "settings.jsonl"

T = TypeVar("T")


class _HostApplier(Protocol):
    """Applies the settings of one host."""

    def hold(self, settings: Settings) -> SetUp: ...

    def restore(self) -> None: ...


class HostLaboratory:
    """Hosts that exist. `folder` is the study directory, `consent` says what may be overwritten."""

    def __init__(self, folder: Path, consent: Consent) -> None:
        self._folder = folder
        self._consent = consent
        self._up: _Up | None = None

    def bring_up(self, san: San, cases: Iterable[Settings]) -> Mapping[str, Any]:
        """See `Laboratory`. What an earlier process left changed is put back first."""
        self.close()
        with ExitStack() as stack:
            up = _Up(san.hosts)
            for host in san.hosts:
                up.appliers[host.name] = self._applier(host, stack)
            up.all_do(lambda applier: applier.restore())
            up.cluster = _cluster(san, stack)
            up.stack = stack.pop_all()
        self._up = up
        return {**up.facts(), "unproven": unproven(dict.fromkeys(name for case in cases for name in case))}

    def _applier(self, host: RealHost, stack: ExitStack) -> _HostApplier:
        target = HostTarget(host.name, host.devices)
        if host.is_here:
            journal = stack.enter_context(HostJournal(self._folder / JOURNAL))
            return HostSettings(target, journal)
        remote = RemoteSettings(place(host), target, sudo=host.sudo)
        stack.callback(remote.close)
        return remote

    def survey(self, study: Study) -> tuple[Look, ...]:
        """The contents of all volumes that some workload writes to, before anything is changed.
        The hosts of each SAN look at their own. Raises LinerateError."""
        found: dict[tuple[str, str], Look] = {}
        for san in study.sans:
            loads = [one for one in study.workloads if one.san == san.name and one.spec is not None]
            if not any(written(one.spec) for one in loads if one.spec is not None):
                continue
            with ExitStack() as stack:
                up = _Up(san.hosts, cluster=_cluster(san, stack))
                for workload, settings in _loads_on(study, san, loads):
                    up.settings = settings
                    run = self._run(up, workload, self._folder, {})
                    spec = placed(workload, run)
                    looks = run.loader.look(spec, written(spec))
                    found |= {(look.host, look.url): look for look in looks}
        return tuple(found.values())

    def _run(self, up: _Up, workload: Workload, directory: Path, record: Mapping[str, Any]) -> LaboratoryRun:
        volumes = [placed_volume(url) for host in up.loading for url in host.volumes]
        loader = _Hosts(up, workload)
        return LaboratoryRun(workload, up.settings, volumes, directory, record, self._consent, loader)

    def give_free(self, study: Study) -> None:
        """Judges what the study would overwrite, and asks if there is a terminal, before anything is changed.

        Raises RefusedError.
        """
        self._consent = self._consent.once(self.survey(study))

    def apply(self, settings: Settings) -> SetUp:
        """See `Laboratory`. A setting that one host lacks is refused, and the others are left without it."""
        up = self._opened
        refused = unfit_for((is_share(url) for host in up.loading for url in host.volumes), settings)
        refused |= {name: why for name in settings if (why := _not_here(name))}
        wanted = {
            name: value for name, value in settings.items() if name not in refused and _is_of_host(name)
        }
        done = up.hold(wanted)
        if lacking := _lacking({name: one.refused for name, one in done.items()}):
            refused |= lacking
            done = up.hold({name: value for name, value in wanted.items() if name not in lacking})
        up.settings = {name: value for name, value in settings.items() if name not in refused}
        up.readback = {name: one.readback for name, one in done.items()}
        first = next(iter(done.values())).readback
        return SetUp({**up.settings, **first}, refused)

    def measure(self, workload: Workload, directory: Path, record: Mapping[str, Any]) -> Measured:
        """See `Laboratory`. Without one of its hosts a run is degraded and does not count: raises HostError."""
        up = self._opened
        if workload.lan:
            raise UserError(f"{workload.name}: LAN streams need a topology", "leave lan out on real hosts")
        several = {"settings_by_host": up.readback} if len(up.hosts) > 1 else {}
        run = self._run(up, workload, directory, {**record, **several})
        found = measure(run)
        assert isinstance(run.loader, _Hosts)
        if lost := run.loader.lost():
            losses = "; ".join(f"host {name} was lost ({why})" for name, why in lost.items())
            raise HostError(f"degraded: {losses}", "see that the host is up; the run is made again")
        return found

    def restore(self) -> None:
        """See `Laboratory`. Raises HostError when a setting cannot be put back."""
        if self._up is not None:
            self._up.all_do(lambda applier: applier.restore())

    def close(self) -> None:
        """See `Laboratory`."""
        up, self._up = self._up, None
        if up is not None:
            try:
                up.all_do(lambda applier: applier.restore())
            finally:
                up.stack.close()

    @property
    def _opened(self) -> _Up:
        if self._up is None:
            raise InternalError("no SAN is up")
        return self._up


@dataclass(slots=True)
class _Up:
    """Hosts that are open, with their settings and workers."""

    hosts: tuple[RealHost, ...]
    appliers: dict[str, _HostApplier] = field(default_factory=dict)
    cluster: Cluster | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    settings: Settings = field(default_factory=dict)
    readback: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By host."""

    @property
    def loading(self) -> Sequence[RealHost]:
        """The hosts that make the load."""
        return loading(self.hosts, self.settings)

    def all_do(self, work: Callable[[_HostApplier], T]) -> dict[str, T]:
        """On all hosts at once; every one comes to its end before the first error is raised."""
        with ThreadPoolExecutor(len(self.appliers)) as pool:
            done = {name: pool.submit(work, applier) for name, applier in self.appliers.items()}
        return {name: one.result() for name, one in done.items()}

    def hold(self, settings: Settings) -> dict[str, SetUp]:
        """Makes these settings hold on every host; what became of it, by host."""
        return self.all_do(lambda applier: applier.hold(settings))

    def facts(self) -> Mapping[str, Any]:
        """What the hosts are, as their workers and holders say."""
        about = self.cluster.about() if self.cluster is not None else {}
        if len(self.hosts) == 1 and self.hosts[0].is_here:
            (host,) = self.hosts
            return {"fabric": "", "host": host.name, "devices": ", ".join(host.devices)}
        return {
            "fabric": "",
            "host": ", ".join(host.name for host in self.hosts),
            "hosts": {
                host.name: {
                    "reached": reached(host),
                    "devices": ", ".join(host.devices),
                    "volumes": len(host.volumes),
                    "kernel": _kernel(self.appliers[host.name]),
                    **{
                        key: value
                        for key, value in about.get(host.name, {}).items()
                        if isinstance(value, str | int)
                    },
                }
                for host in self.hosts
            },
        }


def _loads_on(
    study: Study, san: San, workloads: Iterable[Workload]
) -> Iterator[tuple[Workload, Mapping[str, SettingValue]]]:
    """Each workload with each choice of the host that makes it."""
    for workload in workloads:
        cases = [case.name for case in study.cases if workload.name in case.workloads]
        for host in dict.fromkeys(study.settings(san.name, case).get(HOST) for case in cases):
            yield workload, {} if host is None else {HOST: host}


def _cluster(san: San, stack: ExitStack) -> Cluster | None:
    """Workers on its hosts; none if this machine is the only one."""
    if all(host.is_here for host in san.hosts):
        return None
    from linerate.cluster import Cluster

    places = [place(host) for host in san.hosts]
    ports = PortRange.parse(san.control_ports) if san.control_ports is not None else None
    return stack.enter_context(Cluster(places, address=san.control_address, ports=ports))


class _Hosts:
    """Starts a workload's load where its volumes belong, and knows afterwards which hosts were lost. A `Loader`."""

    def __init__(self, up: _Up, workload: Workload) -> None:
        self._up = up
        self._here = Here()
        names = [volume.name for volume in workload.spec.volumes] if workload.spec else []
        self._owners = dict(zip(names, owners(up.loading), strict=False))
        self._lost: Callable[[], Mapping[str, str]] = dict

    def look(self, spec: RunSpec, names: Collection[str]) -> Sequence[Look]:
        """See `linerate.run.Loader`."""
        if self._up.cluster is None:
            return self._here.look(spec, names)
        return self._up.cluster.look_at_parts(apportion(spec, self._owners), names)

    def hosts_of(self, spec: RunSpec) -> Mapping[str, Sequence[str]]:
        """See `linerate.run.Loader`."""
        if self._up.cluster is None:
            return self._here.hosts_of(spec)
        return {volume.name: (self._owners[volume.name],) for volume in spec.volumes}

    def start(self, cleared: Cleared) -> Load:
        """See `linerate.run.Loader`."""
        if self._up.cluster is None:
            return self._here.start(cleared)
        load = self._up.cluster.start_parts(apportion(cleared.spec, self._owners), cleared)
        self._lost = lambda: load.lost
        return load

    def lost(self) -> Mapping[str, str]:
        """Hosts that the result lacks, and why."""
        return self._lost()


def _lacking(refused: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Setting -> why not all hosts can have it, from what each refuses; those that refuse are named unless all do."""
    reasons: dict[str, dict[str, str]] = {}
    for host, its in refused.items():
        for setting, why in its.items():
            reasons.setdefault(setting, {})[host] = why
    return {
        setting: next(iter(of.values()))
        if len(of) == len(refused) and len(set(of.values())) == 1
        else "; ".join(f"host {host}: {why}" for host, why in of.items())
        for setting, of in reasons.items()
    }


def _kernel(applier: _HostApplier) -> str:
    return str(applier.facts["kernel"]) if isinstance(applier, RemoteSettings) else platform.release()


def _not_here(name: str) -> str:
    """Why hosts that exist cannot have a setting; empty if nothing here forbids it."""
    if applied_by(name) in ("faults", "multipath"):
        return "only a virtual SAN has the paths and faults that it needs"
    if name in (ARRAY, CPU, OTHER_SESSION):
        return "only a virtual SAN has it"
    if name not in catalogue() and is_of_topology(name):
        return "a host cannot change it"
    return ""


def _is_of_host(name: str) -> bool:
    """On a host that exists, adapter settings belong to the adapter."""
    return name in catalogue() and applied_by(name) != "load"
