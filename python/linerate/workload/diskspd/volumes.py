"""Targets of commands as volumes: disk1, disk2, .. in the order of the file.

Threads of a command that go through a target in order have a volume each, `disk1.t2` for the second thread, because
each has a position of its own. Otherwise all threads share the volume's queue.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from linerate.errors import UserError
from linerate.workload.diskspd.settings import CommandSettings, CommandTarget
from linerate.workload.overrides import Overrides
from linerate.workload.problems import Problems, shorten
from linerate.workload.spec import SharedQueue, VolumeSpec
from linerate.workload.url import NO_DEVICE, Target, in_dev, parse_target, path_of

_OUTSTANDING_MAX = 65_536
_THREADS_MAX = 4096


def disk_names(commands: Sequence[CommandSettings]) -> dict[str, str]:
    """The volume name of each target, by its text in lower case."""
    names: dict[str, str] = {}
    for command in commands:
        for target in command.targets:
            names.setdefault(target.text.lower(), f"disk{len(names) + 1}")
    return names


def _queue(command: CommandSettings, target: CommandTarget, name: str) -> SharedQueue | None:
    if not command.shares_queue or len(command.targets) < 2:
        return None
    return SharedQueue(name=name, weight=target.weight)


@dataclass(slots=True)
class CommandVolumes:
    """Makes the volumes of runs. names: those of `disk_names`."""

    names: dict[str, str]
    overrides: Overrides
    problems: Problems
    _found: dict[tuple[str, bool], Target | None] = field(default_factory=dict)

    def make(self, groups: Sequence[CommandSettings]) -> list[list[VolumeSpec]]:
        """The volumes of each group of a run; some are missing after a problem was noted."""
        texts = Counter(target.text.lower() for one in groups for target in one.targets)
        twice = {text for text, uses in texts.items() if uses > 1}
        made = [
            [
                volume
                for target in one.targets
                for volume in self._of_target(one, target, number if target.text.lower() in twice else 0)
            ]
            for number, one in enumerate(groups, start=1)
        ]
        every = [volume for own in made for volume in own]
        if sum(volume.outstanding for volume in every) > _OUTSTANDING_MAX * max(len(every), 1):
            self.problems.error(groups[0].place, "too many I/Os in flight", f"at most {_OUTSTANDING_MAX:,}")
        if len(groups) > 1 and groups[0].shares_queue:
            what = "-O with targets that have different options is not supported: they share no queue here"
            self.problems.error(groups[0].place, what, "write -o")
        return made

    def _of_target(self, command: CommandSettings, target: CommandTarget, group: int) -> list[VolumeSpec]:
        """group: the number of the group, of a target that several have; else 0."""
        disk = self.names[target.text.lower()]
        name = f"{disk}.g{group}" if group else disk
        threads = target.threads or command.threads
        end = min((one for one in (target.size_bytes, command.end_bytes) if one is not None), default=None)
        found = self._target(disk, target, sized=end is not None)
        apart = threads > 1 and command.random_percent < 100 and not command.is_interlocked
        if threads > _THREADS_MAX or threads * command.outstanding > _OUTSTANDING_MAX:
            what = f"{threads:,} threads with {command.outstanding:,} I/Os each on {shorten(target.text)}"
            accepted = f"at most {_THREADS_MAX:,} threads and {_OUTSTANDING_MAX:,} I/Os in flight"
            self.problems.error(command.place, what, accepted)
            return []
        if found is None:
            return []
        made = []
        for thread in range(threads if apart else 1):
            first = command.base_bytes + thread * command.thread_stride_bytes
            size = None if end is None else end - first
            if size is not None and size < command.size_bytes:
                what = f"thread {thread + 1} begins at byte {first:,}, and the used part ends at {end:,}"
                self.problems.error(command.place, what, "write a smaller -T, or fewer threads")
                return []
            made.append(
                VolumeSpec(
                    name=f"{name}.t{thread + 1}" if apart else name,
                    url=found.url,
                    user=found.user,
                    secret=found.secret,
                    mutual_user=found.mutual_user,
                    mutual_secret=found.mutual_secret,
                    first_byte=first,
                    size_bytes=size,
                    outstanding=command.outstanding * (1 if apart else threads),
                    direct=command.direct,
                    durable_writes=command.durable_writes,
                    create=found.can_be_made and size is not None,
                    shares_device=apart or bool(group),
                    queue=_queue(command, target, f"t{thread + 1}" if apart else "all"),
                    iscsi=found.iscsi,
                )
            )
        return made

    def _target(self, name: str, target: CommandTarget, *, sized: bool) -> Target | None:
        key = name, sized
        if key not in self._found:
            self._found[key] = self._looked_up(name, target, sized=sized)
        return self._found[key]

    def _looked_up(self, name: str, target: CommandTarget, *, sized: bool) -> Target | None:
        text, place = target.text, target.place
        shown = f"target {shorten(text)}"
        try:
            mapped = self.overrides.luns.resolve(name, text)
            if mapped is None and not text.startswith(("/", "./", "iscsi://", "smb://", "null:", "file:")):
                what = f"{shown}: a file or drive of the host where the command ran"
                self.problems.error(place, what, f"say where it is: --map {name}=TARGET, or --target")
                return None
            found = parse_target(mapped or text)
        except UserError as error:
            self.problems.error(place, f"{shown}: {error.message}", error.hint)
            return None
        path = path_of(found.url)
        if found.kind != "file" or not path or os.path.exists(path):
            return found
        if in_dev(path):
            self.problems.error(place, f"{shown}: {path}: no such device", NO_DEVICE)
        elif not sized and not (self.overrides.create and self.overrides.size_bytes):
            hint = "correct the target, or give --create and --size; -c of diskspd has a file made too"
            self.problems.error(place, f"{shown}: {path} does not exist", hint)
        else:
            what = f"{shown}: {path} is made unwritten; diskspd would fill its file first"
            self.problems.notice(place, what)
            return found
        return None
