"""Which hosts run which FWDs, on which FSDs: what vdbench (5.04.06) refuses there, and what each run says of its hosts.

An FWD runs on all of its hosts, on all of its FSDs. Two hosts use one FSD only if it has shared=yes: each of them has
its own files of it then (`linerate.cluster.deal_files`). Without, each host has FSDs of its own (`$host`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from linerate.plural import plural
from linerate.workload.files import FileWorkSpec, StructureSpec
from linerate.workload.problems import Problems
from linerate.workload.vdbench.fsd.settings import FileRd, Fsd, Fwd
from linerate.workload.vdbench.hosts import HostDefinitions

_TWO_STEPS = "write an RD with format=(clean,only), then one with format=(restart,only)"


@dataclass(slots=True)
class FileHosts:
    """The hosts of a file, and what is wrong in their use."""

    definitions: HostDefinitions
    fsds: Mapping[str, Fsd]
    problems: Problems
    verify: bool
    """Data are checked."""
    _verified: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By FSD, the hosts of the first run that checks its data."""

    def of_works(
        self,
        rd: FileRd,
        fwds: Mapping[str, Fwd],
        works: Sequence[FileWorkSpec],
        structures: Sequence[StructureSpec],
    ) -> tuple[tuple[str, ...], ...] | None:
        """By workload of a run, the hosts that run it; None after a problem was noted.

        Nothing in a file without hosts.
        """
        if self.definitions.are_one_here:
            return ()
        hosts = tuple(fwds[work.name].hosts for work in works)
        users = self._users(works, hosts, structures)
        fits = self._skews_fit(rd, [fwds[name] for name in dict.fromkeys(work.name for work in works)])
        fits = fits and all(self._targets_fit(rd, fwds[work.name], users, structures, work) for work in works)
        fits = fits and all(self._threads_fit(rd, fwds[work.name], work.threads) for work in works)
        return hosts if fits and self._structures_fit(rd, users, structures) else None

    def of_format(
        self,
        rd: FileRd,
        names: Mapping[str, Fwd],
        structures: Sequence[StructureSpec],
        fsds: Mapping[str, Sequence[str]],
    ) -> tuple[tuple[str, ...], ...] | None:
        """The same of a format: by structure, the hosts whose FWDs use it. `fsds`: the FSDs of each FWD."""
        if self.definitions.are_one_here:
            return ()
        users = {
            structure.name: self.definitions.ordered(
                {label for name, fwd in names.items() if structure.name in fsds[name] for label in fwd.hosts}
            )
            for structure in structures
        }
        if not self._structures_fit(rd, users, structures):
            return None
        for structure in structures:
            formatting, labels = rd.formatting, users[structure.name]
            if len(labels) > 1 and formatting.delete and not formatting.clean:
                what = (
                    f"rd={rd.name}: a format of fsd={structure.name} on {plural(len(labels), 'host')} removes "
                    "or makes: one host would remove what another has made"
                )
                self.problems.error(rd.place, what, _TWO_STEPS)
                return None
        return tuple(users[structure.name] for structure in structures)

    def _users(
        self,
        works: Sequence[FileWorkSpec],
        hosts: Sequence[tuple[str, ...]],
        structures: Sequence[StructureSpec],
    ) -> dict[str, tuple[str, ...]]:
        """By FSD, its hosts in a run; those that copy into it too."""
        found: dict[str, set[str]] = {structure.name: set() for structure in structures}
        for work, labels in zip(works, hosts, strict=True):
            for index in (work.structure, work.target):
                if index is not None:
                    found[structures[index].name].update(labels)
        return {name: self.definitions.ordered(labels) for name, labels in found.items()}

    def _skews_fit(self, rd: FileRd, fwds: Sequence[Fwd]) -> bool:
        """vdbench keeps shares on each host by itself."""
        if not any(fwd.skew for fwd in fwds) or len({fwd.hosts for fwd in fwds}) == 1:
            return True
        other = next(fwd for fwd in fwds if fwd.hosts != fwds[0].hosts)
        what = (
            f"rd={rd.name}: with skew= all FWDs need the same hosts; fwd={fwds[0].name} has "
            f"{', '.join(fwds[0].hosts)}, fwd={other.name} has {', '.join(other.hosts)}"
        )
        self.problems.error(other.place, what, "give them the same host=, or leave out skew=")
        return False

    def _threads_fit(self, rd: FileRd, fwd: Fwd, threads: int) -> bool:
        """`threads` of one of its workloads."""
        if threads >= len(fwd.hosts):
            return True
        what = (
            f"rd={rd.name}: fwd={fwd.name} has {plural(threads, 'thread')} for each FSD and operation, "
            f"and {plural(len(fwd.hosts), 'host')}"
        )
        self.problems.error(
            fwd.place, what, f"write threads= so that each host gets one, or host={fwd.hosts[0]}"
        )
        return False

    def _targets_fit(
        self,
        rd: FileRd,
        fwd: Fwd,
        users: Mapping[str, tuple[str, ...]],
        structures: Sequence[StructureSpec],
        work: FileWorkSpec,
    ) -> bool:
        """A host copies its own files: both structures are divided alike."""
        if work.target is None:
            return True
        name, target = structures[work.structure].name, structures[work.target].name
        if users[name] == users[target]:
            return True
        what = (
            f"rd={rd.name}: fwd={fwd.name} copies from fsd={name} on {', '.join(users[name])} "
            f"to fsd={target} on {', '.join(users[target])}"
        )
        self.problems.error(fwd.place, what, "use both FSDs on the same hosts in an RD")
        return False

    def _structures_fit(
        self, rd: FileRd, users: Mapping[str, tuple[str, ...]], structures: Sequence[StructureSpec]
    ) -> bool:
        for structure in structures:
            fsd, labels = self.fsds[structure.name], users[structure.name]
            if len(labels) > 1 and not fsd.shared:
                what = f"rd={rd.name}: fsd={fsd.name} without shared=yes has {len(labels)} hosts ({', '.join(labels)})"
                accepted = (
                    "write shared=yes if all of them reach the same folder; else give each host an FSD of its own: "
                    "fsd=name_$host,anchor=/path/$host and fwd=name_$host,fsd=name_$host,host=$host"
                )
                self.problems.error(fsd.place, what, accepted)
                return False
            if structure.file_count < len(labels):
                what = (
                    f"rd={rd.name}: fsd={fsd.name} has {plural(structure.file_count, 'file')} "
                    f"for {plural(len(labels), 'host')}, each of which needs one of its own"
                )
                self.problems.error(
                    fsd.place, what, "write more files=, or fewer hosts in the host= of its FWDs"
                )
                return False
            if self.verify:
                before = self._verified.setdefault(fsd.name, labels)
                if before != labels:
                    what = (
                        f"rd={rd.name}: data are checked, and fsd={fsd.name} has other hosts than in an RD before: "
                        "each host knows only what it wrote itself"
                    )
                    self.problems.error(
                        rd.place, what, "use it on the same hosts in all RDs, or do not verify"
                    )
                    return False
        return True
