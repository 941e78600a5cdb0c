"""A laboratory on this machine: the topology of a study's SAN brought up as a virtual one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from linerate.errors import HostError, InternalError, LinerateError, UserError
from linerate.host import HostJournal, HostSettings, HostTarget, unproven
from linerate.lab import Lab
from linerate.lab.cpu.idle import kept_awake
from linerate.lab.cpu.limit import CpuLimit, processes_in
from linerate.lab.lan import LanTraffic
from linerate.lab.replication import Replication
from linerate.lab.sockets import ArrayWaits
from linerate.run import VirtualSan, watch
from linerate.san import Array, Host, Link, Nic, Storage, Switch, Topology
from linerate.settings import ARRAY, CPU, HOST, OTHER_SESSION, REPLICATION, applied_by, is_of_topology
from linerate.study.laboratory.base import Measured, SetUp
from linerate.study.laboratory.faults import FaultTimeline, faults_of
from linerate.study.laboratory.measure import LaboratoryRun, Placed, measure
from linerate.study.laboratory.modelled import ModelledSan
from linerate.study.laboratory.multipath import path_specs, paths_of
from linerate.study.laboratory.precondition import precondition
from linerate.study.laboratory.settings import (
    beyond_kernel_settings,
    changed_topology,
    has_lan,
    replicates,
    topology_values,
)
from linerate.study.laboratory.shares import other_session, unfit_for, without_shares
from linerate.study.model import San, Settings, SettingValue, Workload
from linerate.volumes import Consent

JOURNAL = "settings.jsonl"


class VirtualLaboratory:
    """Brings labs up. Network settings are live changes of the lab, host settings go into its namespaces.

    `folder` is the study directory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._up: _Up | ModelledSan | None = None

    def bring_up(self, san: San, cases: Iterable[Settings]) -> Mapping[str, Any]:
        """See `Laboratory`. The fabric is the user-space one if some case changes what the kernel's lacks."""
        self.close()
        if san.topology is None:
            raise InternalError(f"{san.name} has no topology")
        if san.clock == "virtual":
            self._up = ModelledSan(san.topology)
            return self._up.facts()
        every = list(cases)
        topology, absent = without_shares(san.topology, every)
        needs = {name for case in every for name in beyond_kernel_settings(topology, case)}
        up = self._up = _Up(san, topology, absent, needs, self._folder / JOURNAL)
        # The lab is the network: what it was set to is in force.
        others = {name for case in every for name in case if not is_of_topology(name)}
        return {**up.facts(), "unproven": unproven(sorted(others))}

    def apply(self, settings: Settings) -> SetUp:
        """See `Laboratory`."""
        return self._lab.apply(settings)

    def measure(self, workload: Workload, directory: Path, record: Mapping[str, Any]) -> Measured:
        """See `Laboratory`."""
        return self._lab.measure(workload, directory, record)

    def restore(self) -> None:
        """See `Laboratory`."""
        if self._up is not None:
            self._up.apply({})

    def close(self) -> None:
        """See `Laboratory`. What was set goes with the lab."""
        up, self._up = self._up, None
        if up is not None:
            up.close()

    @property
    def _lab(self) -> _Up | ModelledSan:
        if self._up is None:
            raise InternalError("no SAN is up")
        return self._up


class _Up:
    """A lab that is up, and its present state. `absent`: arrays that this machine cannot have -> why."""

    def __init__(
        self, san: San, topology: Topology, absent: Mapping[str, str], needs: Iterable[str], journal: Path
    ) -> None:
        self._san = san
        self._as_built = topology
        self._absent = absent
        self._now = _elements(topology)
        self._settings: Settings = {}
        self._preconditioned: Mapping[str, Storage | None] = {}
        self._cpu_limit: CpuLimit | None = None
        with ExitStack() as stack:
            fabric = topology.fabric if san.fabric == "auto" else san.fabric
            asked = sorted(needs) if fabric == "auto" else ()  # a fabric that was named stays; it may refuse
            self._lab = stack.enter_context(Lab.up(topology, fabric=fabric, needs=asked))
            # Settings go with their namespaces: entries of an earlier lab in the journal are void.
            journal.unlink(missing_ok=True)
            stack.callback(journal.unlink, missing_ok=True)
            written = stack.enter_context(HostJournal(journal))
            self._idle_cpus = stack.enter_context(kept_awake())
            self._stack = stack.pop_all()
        self._hosts = tuple(HostSettings(self._target(host), written) for host in topology.hosts)

    def _target(self, host: Host) -> HostTarget:
        devices = tuple(interface.name for interface in host.interfaces)
        return HostTarget(host.name, devices, self._lab.namespace(host.name).path)

    def facts(self) -> Mapping[str, Any]:
        """What the lab says of itself, and of the machine while it is up."""
        return {**self._lab.facts(), "idle_cpus": self._idle_cpus}

    def close(self) -> None:
        """Takes it down."""
        self._limit_cpu({})
        self._stack.close()

    def apply(self, settings: Settings) -> SetUp:
        """Moves the lab from the last case to this one."""
        refused = self._unfit(settings)
        wanted = {name: value for name, value in settings.items() if name not in refused}
        refused |= self._move({name: value for name, value in wanted.items() if is_of_topology(name)})
        mine = {name: value for name, value in wanted.items() if applied_by(name) == "host"}
        readback: dict[str, SettingValue | None] = {}
        for host in self._hosts:
            done = host.hold(mine)
            readback |= done.readback
            refused |= done.refused
        refused |= self._limit_cpu(wanted)
        if replicates(wanted) and (why := Replication(self._lab).refusal()):
            refused[REPLICATION] = why
        self._settings = {name: value for name, value in wanted.items() if name not in refused}
        return SetUp({**self._settings, **topology_values(self._settings), **readback}, refused)

    def _limit_cpu(self, settings: Settings) -> dict[str, str]:
        """Ends the limit of the last case and begins that of this one; why not, if this machine has none."""
        limit, self._cpu_limit = self._cpu_limit, None
        if limit is not None:
            limit.close()
        if CPU not in settings:
            return {}
        arrays = [self._lab.namespace(array.name).path for array in self._as_built.arrays]
        try:
            self._cpu_limit = CpuLimit(int(settings[CPU]), list(processes_in(arrays)))
        except HostError as error:
            return {CPU: _reason(error)}
        return {}

    def _unfit(self, settings: Settings) -> dict[str, str]:
        """What this SAN lacks; and what the fabric could be given, and would then carry something else than a wire
        does."""
        if why := self._absent.get(str(settings.get(ARRAY))):
            return {ARRAY: why}
        unfit: dict[str, str] = {}
        if self._lab.fabric == "kernel" and settings.get("lso") in ("on", True):
            unfit["lso"] = (
                "the kernel fabric would shape whole segments, not frames; the user fabric cuts them"
            )
        return unfit | unfit_for((array.kind == "nas" for array in self._loaded(settings)), settings)

    def measure(self, workload: Workload, directory: Path, record: Mapping[str, Any]) -> Measured:
        """Runs the workload from every host of the lab, with its LAN streams beside it."""
        flow = workload.lan if has_lan(self._settings) else ()
        streams = [stream for stream in self._as_built.lan if stream.name in flow]
        arrays = tuple(array.name for array in self._as_built.arrays)
        faults = faults_of(self._settings)
        self._precondition()
        with ExitStack() as beside:
            copies = beside.enter_context(Replication(self._lab)) if replicates(self._settings) else None
            traffic = beside.enter_context(LanTraffic(self._lab, streams))
            volumes = tuple(self._volumes())
            if (other := str(self._settings.get(OTHER_SESSION, "none"))) != "none":
                beside.enter_context(other_session(volumes[-1], other))
            waits = beside.enter_context(ArrayWaits(self._lab, arrays))
            counted = [one for one in (self._lab, traffic, waits, copies) if one is not None]
            return measure(
                LaboratoryRun(
                    workload,
                    self._settings,
                    volumes,
                    directory,
                    {**record, "facts": {**self.facts(), **({"lan": traffic.tool} if streams else {})}},
                    Consent.nothing(),
                    VirtualSan(),
                    counters=lambda: {
                        name: value for one in counted for name, value in one.counters().items()
                    },
                    line_rates=self._line_rates(),
                    beside=FaultTimeline(self._lab, faults, workload) if faults else None,
                    arrays=watch(self._lab.array_reports) if self._has_disks else None,
                )
            )

    def _loaded(self, settings: Settings) -> tuple[Array, ...]:
        """The arrays whose volumes the load uses under these settings."""
        named = settings.get(ARRAY)
        return tuple(array for array in self._as_built.arrays if named in (None, array.name))

    def _precondition(self) -> None:
        """Writes volumes full that are new: of pools, and those in memory beside the files of a NAS, which have all
        of their blocks."""
        beside_nas = any(array.kind == "nas" for array in self._as_built.arrays)
        wanted: dict[str, Storage | None] = {}
        for array in self._as_built.arrays:
            storage = self._now.get(("storage", array.name))
            if isinstance(storage, Storage):
                if storage.backing == "pool":
                    wanted[array.name] = storage
            elif beside_nas and array.kind == "iscsi":
                wanted[array.name] = None
        if wanted != self._preconditioned:
            precondition({place.url: place for place in self._volumes(tuple(wanted))}.values())
            self._preconditioned = wanted

    @property
    def _has_disks(self) -> bool:
        return any(array.storage is not None for array in self._as_built.arrays)

    def _line_rates(self) -> dict[str, float]:
        """Of every port, as it is now; of a team all its links together."""
        rates = changed_topology(self._as_built, self._settings).line_rates
        return {name: rate for name, rate in rates.items() if "." in name}

    def _volumes(self, arrays: Collection[str] | None = None) -> Iterator[Placed]:
        """In the order in which workloads take them; of these arrays, or else of those that the load uses."""
        used = arrays if arrays is not None else [array.name for array in self._loaded(self._settings)]
        named = self._settings.get(HOST)
        for host in self._as_built.hosts:
            if named not in (None, host.name):
                continue
            namespace = self._lab.namespace(host.name).path
            paths = paths_of(self._as_built, host.name, self._settings)
            for array in self._as_built.arrays:
                for volume in array.volumes if array.name in used else ():
                    if ways := paths.get(f"{array.name}.{volume.name}"):
                        url = array.url(volume, ways[0].array_address)
                        if array.kind == "nas":
                            yield Placed(url, namespace, access=self._lab.smb_login())
                            continue
                        specs = path_specs(ways, self._settings)
                        yield Placed(url, namespace, ways[0].host_address, paths=specs)

    def _move(self, settings: Settings) -> dict[str, str]:
        """Changes links, adapters and switches to what these settings make of the topology as built.

        All at once, which is how cases follow each other; one by one where that fails, to name what cannot be had.
        Gives the settings that were refused.
        """
        try:
            self._change_to(changed_topology(self._as_built, settings))
        except (HostError, UserError):
            self._change_to(self._as_built)
        else:
            return {}
        refused: dict[str, str] = {}
        wanted: dict[str, SettingValue] = {}
        for name, value in settings.items():
            try:
                self._change_to(changed_topology(self._as_built, {**wanted, name: value}))
            except (HostError, UserError) as error:
                refused[name] = _reason(error)
                self._change_to(changed_topology(self._as_built, wanted))
            else:
                wanted[name] = value
        return refused

    def _change_to(self, wanted: Topology) -> None:
        """Changes what differs from now. Raises what the lab raises; `_now` then says how far it came."""
        change: dict[str, Callable[..., BaseModel]] = {
            "link": self._lab.change_link,
            "nic": self._lab.change_nic,
            "switch": self._lab.change_switch,
            "storage": self._lab.change_storage,
        }
        for (part, name), element in _elements(wanted).items():
            if fields := _different(self._now[part, name], element):
                found = change[part](name, **fields).model_dump()
                self._now[part, name] = element
                for field, value in fields.items():
                    if found[field] != value:
                        raise HostError(f"{name}: {field} {value} was written and {found[field]} read back")


def _elements(topology: Topology) -> dict[tuple[str, str], Link | Nic | Switch | Storage]:
    """Everything that can be changed while a lab is up, by kind and name."""
    links = {("link", name): link for name, link in topology.links.items()}
    nics = {("nic", f"{node.name}.{port.name}"): port.nic for node in topology.nodes for port in node.ports}
    switches = {("switch", switch.name): switch for switch in topology.switches}
    storages = {("storage", array.name): array.storage for array in topology.arrays if array.storage}
    return {**links, **nics, **switches, **storages}


def _different(before: BaseModel, after: BaseModel) -> dict[str, Any]:
    """Fields of two models of one kind that differ, as the second has them."""
    old = before.model_dump()
    return {name: value for name, value in after.model_dump().items() if value != old[name]}


def _reason(error: LinerateError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
