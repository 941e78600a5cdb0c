"""The manager list: managers with their workers, and what each worker does on which targets."""

from __future__ import annotations

from dataclasses import dataclass

from linerate.workload.iometer.configuration import IcfManager, IcfWorker
from linerate.workload.iometer.lexer import IcfEntry, IcfSection
from linerate.workload.iometer.tables import ASSIGNED, DISK, MANAGER, OUTSTANDING, IcfEffect
from linerate.workload.iometer.values import named, one_line, whole, word
from linerate.workload.problems import Problems, SourceLocation, shorten

WORKERS_MAX = 4096
_DEPTH_MAX = 65_536
_SECTORS_MAX = 1 << 53
_PATTERN_MAX = 2
_SEED_MAX = (1 << 64) - 1
_TRANSACTIONS_MAX = (1 << 31) - 1
_IDLE = "idle"
_SWITCH = ("DISABLED", "ENABLED")


def read_managers(section: IcfSection | None, problems: Problems) -> list[IcfManager]:
    """The managers of a file in order; what is wrong is noted in `problems`."""
    reader = _Reader(problems)
    for entry in section.entries if section else ():
        reader.entry(entry)
    reader.end_network()
    return reader.managers


@dataclass(slots=True)
class _Network:
    """A network worker: whether it would do anything."""

    place: SourceLocation
    name: str
    has_targets: bool = False
    specifications: list[str] | None = None

    def entry(self, entry: IcfEntry) -> None:
        """Takes one of its labels."""
        if entry.row.name == "Target":
            self.has_targets = True
        elif entry.row.name == ASSIGNED:
            self.specifications = [*(self.specifications or ()), *(name for _, name in entry.values)]

    @property
    def makes_load(self) -> bool:
        """It has targets, and a specification other than Idle; before 1998.05.21 it has all of the file."""
        names = self.specifications
        return self.has_targets and (names is None or any(name.lower() != _IDLE for name in names))


class _Reader:
    """Labels in a row; the last worker of the last manager gets them."""

    def __init__(self, problems: Problems) -> None:
        self.managers: list[IcfManager] = []
        self._problems = problems
        self._worker: IcfWorker | None = None
        self._network: _Network | None = None
        self._count = 0
        self._readers = {
            "Worker type": self._type,
            OUTSTANDING: self._outstanding,
            DISK: self._disk,
            ASSIGNED: self._assigned,
            "Target": self._target,
            "Target type": self._target_type,
        }

    def entry(self, entry: IcfEntry) -> None:
        """Takes one label with its values."""
        name = entry.row.name
        if name in (MANAGER, "Worker", "End worker", "End manager"):
            self.end_network()
        if name == MANAGER:
            self.managers.append(IcfManager(entry.place, entry.value.partition(",")[2].strip()))
            self._worker = None
        elif name == "Worker":
            self._begin(entry)
        elif name in ("End worker", "End manager"):
            self._worker = None
        elif name in self._readers or entry.row.effect is IcfEffect.REFUSED:
            self._of_worker(entry)

    def _begin(self, entry: IcfEntry) -> None:
        self._count += 1
        if self._count > WORKERS_MAX:
            if self._count == WORKERS_MAX + 1:
                self._problems.error(entry.place, f"more than {WORKERS_MAX:,} workers", "split the file")
            self._worker = None
            return
        if not self.managers:
            what = f"{entry.text}: no manager above it"
            self._problems.error(entry.place, what, "write 'Manager ID, manager name above it")
            self.managers.append(IcfManager(entry.place, ""))
        name = one_line(entry, self._problems)
        shown = name if name.isprintable() else shorten(name)
        self._worker = IcfWorker(entry.place, shown, manager=len(self.managers))
        self.managers[-1].workers.append(self._worker)

    def _of_worker(self, entry: IcfEntry) -> None:
        if self._network is not None:
            self._network.entry(entry)
            return
        if self._count > WORKERS_MAX:
            return
        worker, read = self._worker, self._readers.get(entry.row.name)
        if worker is None:
            self._problems.error(entry.place, f"{entry.text}: outside of a worker", "write 'Worker above it")
        elif read is None:
            self._refuse(entry, entry.row.meaning)
        else:
            read(entry, worker)

    def _refuse(self, entry: IcfEntry, reason: str) -> None:
        self._problems.error(
            entry.value_place, f"{entry.text}: is not supported: {reason}", "remove it, or write DISK"
        )

    def _type(self, entry: IcfEntry, worker: IcfWorker) -> None:
        kind = one_line(entry, self._problems).upper()
        if kind.startswith("NETWORK"):
            self._network = _Network(entry.value_place, worker.name)
            self.managers[-1].workers.remove(worker)
        elif kind != "DISK":
            self._problems.error(entry.value_place, f"{entry.text}: no type of a worker", "write DISK")

    def end_network(self) -> None:
        """Decides on a network worker once all of it is known."""
        network, self._network = self._network, None
        if network is None:
            return
        shown = shorten(network.name)
        if network.makes_load:
            what = f"worker {shown}: NETWORK is not supported: it loads a network, not storage"
            self._problems.error(network.place, what, "remove the worker")
        else:
            self._problems.notice(network.place, f"worker {shown}: NETWORK, and idle: it makes no load")

    def _target_type(self, entry: IcfEntry, worker: IcfWorker) -> None:
        if one_line(entry, self._problems).upper() != "DISK":
            what = f"{entry.text}: a target of worker {shorten(worker.name)} is no disk"
            self._problems.error(entry.value_place, what, "write DISK, or remove the target")

    def _outstanding(self, entry: IcfEntry, worker: IcfWorker) -> None:
        place, problems = entry.value_place, self._problems
        values = named(entry, place, one_line(entry, problems), problems)
        if values is None:
            return
        depth = values[OUTSTANDING.lower()]
        worker.outstanding = whole(depth, "outstanding I/Os", place, problems, least=1, most=_DEPTH_MAX)
        connects = values.get("test connection rate", _SWITCH[0])
        each = values.get("transactions per connection", "1")
        transactions = whole(each, "transactions per connection", place, problems, most=_TRANSACTIONS_MAX)
        if word(connects, "test connection rate", _SWITCH, place, problems) == _SWITCH[1]:
            worker.transactions = transactions
            if not transactions:
                what = f"{entry.text}: 0 transactions per connection are not supported: Iometer opens and closes "
                problems.error(place, f"{what}its targets and makes no I/O", "write 1 or more, or DISABLED")
        fixed = values.get("use fixed seed", _SWITCH[0])
        seed = whole(values.get("fixed seed value", "0"), "seed", place, problems, most=_SEED_MAX)
        if word(fixed, "use fixed seed", _SWITCH, place, problems) == _SWITCH[1]:
            worker.seed = seed

    def _disk(self, entry: IcfEntry, worker: IcfWorker) -> None:
        place, problems = entry.value_place, self._problems
        values = named(entry, place, one_line(entry, problems), problems)
        if values is None:
            return
        worker.size_sectors = whole(
            values[DISK.lower()], "disk maximum size", place, problems, most=_SECTORS_MAX
        )
        first = values.get("starting sector", "0")
        worker.first_sector = whole(first, "starting sector", place, problems, most=_SECTORS_MAX)
        pattern = values.get("data pattern", "0")
        worker.pattern = whole(pattern, "data pattern", place, problems, most=_PATTERN_MAX)

    def _assigned(self, entry: IcfEntry, worker: IcfWorker) -> None:
        worker.assigned = [*(worker.assigned or ()), *entry.values]

    def _target(self, entry: IcfEntry, worker: IcfWorker) -> None:
        name = one_line(entry, self._problems)
        if name:
            worker.targets.append((entry.value_place, name))
        else:
            self._problems.error(entry.place, "'Target without a name", "write the name of a disk below it")
