"""Hosts: what `hd=` defines, and which of them `host=` means.

An HD whose system is this machine needs no SSH. With several HDs, or one that is another machine, the plan gets
`LoadHosts`; with none, or one that is this machine, all labels mean this process.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from linerate.workload.hosts import LoadHost, LoadHosts, is_ssh_word
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.vdbench.blocks import LOCAL_HOST, Blocks, Instance
from linerate.workload.vdbench.tables import Block
from linerate.workload.vdbench.values import Value, matches

_SHELLS = ("rsh", "ssh", "vdbench")
_LABEL = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Hd:
    """A host definition."""

    host: LoadHost
    system: str
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class HostDefinitions:
    """All HDs of a file; without any, this machine under vdbench's name for it."""

    hds: tuple[Hd, ...]

    @property
    def are_one_here(self) -> bool:
        """This process makes the whole load."""
        return len(self.hds) == 1 and self.hds[0].host.is_here

    @property
    def elsewhere(self) -> frozenset[str]:
        """The labels of other machines."""
        return frozenset(hd.host.label for hd in self.hds if not hd.host.is_here)

    def ordered(self, labels: Collection[str]) -> tuple[str, ...]:
        """These labels in the order of the HDs."""
        return tuple(hd.host.label for hd in self.hds if hd.host.label in labels)

    def labels(self, value: Value | None, problems: Problems, *, systems: bool = False) -> tuple[str, ...]:
        """The labels that a `host=` means, in its order; without one, all. `systems`: it may name systems too."""
        found: dict[str, None] = {}
        for pattern in value.texts if value else ("*",):
            meant = [
                hd.host.label
                for hd in self.hds
                if matches(pattern, hd.host.label) or (systems and matches(pattern, hd.system))
            ]
            if value and not meant:
                there = ", ".join(hd.host.label for hd in self.hds)
                problems.error(value.place, f"{value.shown}: no hd={pattern}", f"there is {there}")
            found |= dict.fromkeys(meant)
        return tuple(found)

    def luns(self, sd: Instance, problems: Problems) -> dict[str, str | None]:
        """The lun of an SD on each host that uses it, in the order of the hosts; None: it has no `lun=`."""
        single = sd.values.get("lun")
        if single and len(single.texts) > 1:
            problems.error(single.place, f"{single.shown}: one lun expected", "write lun=path")
        pairs: Sequence[tuple[Value | None, Value | None]] = sd.luns or [(single, sd.values.get("host"))]
        found: dict[str, str | None] = {}
        for lun, host in pairs:
            for label in self.labels(host, problems, systems=True):
                if label in found and host is not None:
                    problems.error(
                        host.place, f"sd={sd.name}: two luns for host {label}", "give each host one"
                    )
                found[label] = lun.texts[0] if lun else None
        return {hd.host.label: found[hd.host.label] for hd in self.hds if hd.host.label in found}

    def load_hosts(
        self, urls: Mapping[str, Mapping[str, str]], streams: Mapping[str, tuple[str, ...]]
    ) -> LoadHosts | None:
        """For the plan; None: this process makes the whole load."""
        return None if self.are_one_here else LoadHosts(tuple(hd.host for hd in self.hds), urls, streams)


def read_hosts(blocks: Blocks, problems: Problems) -> HostDefinitions:
    """The HDs of a file. What is wrong in them is noted in `problems`."""
    if not blocks[Block.HD]:
        return HostDefinitions((Hd(LoadHost(LOCAL_HOST, ""), LOCAL_HOST, blocks.general.place),))
    # The full name may be asked of a name server.
    here = {LOCAL_HOST, "127.0.0.1", "::1", socket.gethostname().lower(), socket.getfqdn().lower()}
    return HostDefinitions(tuple(_hd(instance, here, problems) for instance in blocks[Block.HD]))


def _hd(instance: Instance, here: set[str], problems: Problems) -> Hd:
    system = _text(instance, "system", problems) or instance.name
    user = _text(instance, "user", problems)
    if not _LABEL.fullmatch(instance.name):
        what = f"hd={instance.name}: a label has letters, digits, dots, dashes and underscores only"
        problems.error(instance.place, what, "write hd=label,system=name")
    is_here = system.lower() in here
    for word, keyword in ((user, "user"), (system, "system")):
        if word and not is_here and not is_ssh_word(word):
            value = instance.values.get(keyword)
            place = value.place if value else instance.place
            problems.error(place, f"hd={instance.name}: {word!r} is no {keyword}", f"write {keyword}=name")
    _check_shell(instance, problems, is_here=is_here)
    address = "" if is_here else f"{user}@{system}" if user else system
    return Hd(LoadHost(instance.name, address), system, instance.place)


def _text(instance: Instance, keyword: str, problems: Problems) -> str:
    """One text, or nothing."""
    value = instance.values.get(keyword)
    if value is not None and len(value.texts) != 1:
        problems.error(value.place, f"{value.shown}: one value expected", f"write {keyword}=name")
    return value.texts[0] if value else ""


def _check_shell(instance: Instance, problems: Problems, *, is_here: bool) -> None:
    value = instance.values.get("shell")
    if value is None:
        return
    if len(value.texts) != 1 or value.texts[0].lower() not in _SHELLS:
        problems.error(value.place, f"{value.shown}: no such shell", f"write shell={', '.join(_SHELLS)}")
    elif value.texts[0].lower() != "ssh" and not is_here:
        problems.notice(
            value.place, f"hd={instance.name}: {value.shown}: the host is reached by SSH all the same"
        )
