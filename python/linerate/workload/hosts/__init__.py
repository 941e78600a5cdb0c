"""LoadHosts: which hosts of a workload file run which of its streams on which of its volumes.

A plan has it when its file names hosts (vdbench: `hd=`, `host=`). It is about names only. How many I/Os in flight and
which part of the rates each host gets follows from it and from a run (`linerate.cluster.deal`). Runs of file system
workloads say themselves which hosts run what (`FilesLoadSpec.hosts`); their volumes and streams are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SSH_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*|\[[0-9A-Fa-f:.%]+\]")


def is_ssh_word(text: str) -> bool:
    """Whether a host or a user is nothing that ssh would take for an option."""
    return _SSH_WORD.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class LoadHost:
    """A host that makes load."""

    label: str
    """Its name in the file and in results."""
    address: str
    """`[user@]host`, as SSH takes it; empty: this machine."""

    @property
    def is_here(self) -> bool:
        """It is this machine, which needs no SSH."""
        return not self.address


@dataclass(frozen=True, slots=True)
class LoadHosts:
    """The hosts of a file, in its order, and what they run."""

    hosts: tuple[LoadHost, ...]
    urls: Mapping[str, Mapping[str, str]]
    """Volume -> label of each host that uses it, in the order of hosts -> URL of the volume there."""
    streams: Mapping[str, tuple[str, ...]]
    """Stream -> labels of its hosts, in the order in which the file names them. A stream without an entry is on all."""

    def running(self, stream: str, volume: str) -> tuple[str, ...]:
        """The hosts that run a stream on a volume: those of the stream that use the volume."""
        labels = self.streams.get(stream) or tuple(host.label for host in self.hosts)
        return tuple(label for label in labels if label in self.urls[volume])

    def at(self, addresses: Sequence[str]) -> LoadHosts:
        """The same on as many hosts, by their addresses in order."""
        hosts = tuple(
            LoadHost(host.label, address) for host, address in zip(self.hosts, addresses, strict=True)
        )
        return LoadHosts(hosts, self.urls, self.streams)

    def ordered(self, labels: frozenset[str] | set[str]) -> tuple[str, ...]:
        """These labels in the order of the file."""
        return tuple(host.label for host in self.hosts if host.label in labels)
