"""A workload on the volumes that there are: --volumes, and presets on arrays with fewer or smaller LUNs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from linerate.errors import LinerateError, UserError
from linerate.run import Loader
from linerate.workload import FileNotice, RunPlan
from linerate.workload.fewer import on_first_volumes, only, volume_names, within
from linerate.workload.url import is_remote


@dataclass(frozen=True, slots=True)
class Fitted:
    """A plan, and what was changed in it to fit the volumes."""

    plan: RunPlan
    notices: tuple[FileNotice, ...] = ()
    is_preset: bool = False
    """It says what to measure, and not on which array."""
    keeps_sizes: bool = False
    """--size says how much of each volume is used."""

    def on_first(self, count: int | None, why: str = "") -> Fitted:
        """On the first `count` volumes; None: on all. Raises UserError."""
        if count is None:
            return self
        plan, notices = on_first_volumes(self.plan, count, why)
        return replace(self, plan=plan, notices=(*self.notices, *notices))

    def to_luns(self, loader: Loader) -> Fitted:
        """A preset on the LUNs that there are; any other workload as it is.

        LUNs count up to the first one that the array does not have, and none is used beyond its end. If not even the
        first volume can be looked at, the run tells why.
        """
        if not self.is_preset:
            return self.on_traced(loader)
        found: dict[str, int | None] = {}
        specs = {volume.name: run.spec for run in self.plan.steps() for volume in run.spec.volumes}
        fitted = self
        for name in volume_names(self.plan):
            spec = only(specs[name], name)
            try:
                found[name] = loader.look(spec, [name])[0].size_bytes
            except UserError as error:
                if not found or not is_remote(spec.volumes[0].url):
                    return self
                reason = error.message.rpartition(": ")[2].partition(";")[0]
                fitted = self.on_first(len(found), f", because of {name}: {reason}")
                break
        if self.keeps_sizes:
            return fitted
        plan, notices = within(fitted.plan, {name: size for name, size in found.items() if size is not None})
        return replace(fitted, plan=plan, notices=(*fitted.notices, *notices))

    def on_traced(self, loader: Loader) -> Fitted:
        """A trace, with what happens to its offsets on volumes of their size; any other workload as it is."""
        notices = list(self.notices)
        for run in self.plan.steps():
            if run.trace is None:
                continue
            from linerate.workload.trace.load import placement_notices

            sizes: dict[str, int] = {}
            for volume in run.spec.volumes:
                try:
                    found = loader.look(only(run.spec, volume.name), [volume.name])[0].size_bytes
                except LinerateError:  # the run tells why
                    continue
                if (size := volume.size_bytes or found) is not None:
                    sizes[volume.name] = size
            notices += placement_notices(run, sizes)
        return replace(self, notices=tuple(notices))

    def told(self, *, json: bool) -> RunPlan:
        """The plan with these notices. How a preset's file is written is not the user's to mend: programs only are
        told."""
        plan = self.plan
        kept = plan.warnings if json or not self.is_preset else ()
        return RunPlan(
            plan.name,
            plan.plain_steps,
            (*self.notices, *kept),
            start_commands=plan.start_commands,
            end_commands=plan.end_commands,
            hosts=plan.hosts,
            managers=plan.managers,
        )


def fitted_targets(names: Iterable[str], targets: int, volumes: int | None, *, preset: bool) -> int | None:
    """How many volumes several --target are for; None: all. Raises UserError where the numbers do not agree."""
    every = list(names)
    if volumes is not None and volumes != targets:
        raise UserError(
            f"{targets} targets for --volumes {volumes}",
            "give --target once for all volumes or once for each",
        )
    if targets == len(every):
        return None
    if targets < len(every) and (preset or volumes is not None):
        return targets
    few = f"; --volumes {targets} uses the first {targets} only" if targets < len(every) else ""
    raise UserError(
        f"{targets} targets for {len(every)} volumes ({', '.join(every)})",
        f"give --target once for all volumes or once for each{few}",
    )
