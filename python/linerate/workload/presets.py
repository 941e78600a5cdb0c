"""The published studies by name. Their files are in `studies/`; none names a target, so `--map` must."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from linerate.errors import UserError
from linerate.studies import STUDIES
from linerate.workload.overrides import Overrides
from linerate.workload.plan import PlannedRun, PlanStep, RunPlan
from linerate.workload.toml_file import load_toml
from linerate.workload.vdbench import load_vdbench


@dataclass(frozen=True, slots=True)
class Preset:
    """A published study: its files below `studies/`, in order, and what it measures."""

    title: str
    files: tuple[str, ...]
    volumes: int
    """Number of volumes that it needs."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are."""
        return tuple(STUDIES / name for name in self.files)


PRESETS = MappingProxyType(
    {
        "dell-nic": Preset(
            "Dell NIC tuning: 8K random 67 % read, 256K sequential read and write (vdbench, as published)",
            ("dell-nic/8k-random.vdb", "dell-nic/256k-seq-read.vdb", "dell-nic/256k-seq-write.vdb"),
            volumes=8,
        ),
        "dlink": Preset("D-Link DSN: 1 MB sequential read and write", ("dlink.toml",), volumes=4),
        "chelsio": Preset(
            "Chelsio: I/O sizes 1 KB to 1 MB, read, write, mixed", ("chelsio.toml",), volumes=1
        ),
        "anvil": Preset(
            "Anvil-like: ten tests, 4 MB sequential to 4 KB at depth 16", ("anvil.toml",), volumes=1
        ),
        "blade-mixed": Preset(
            "Blade servers beside replication: 75 % 8 KB random, 25 % 256 KB sequential",
            ("raid/mixed.toml",),
            volumes=4,
        ),
    }
)


def load_preset(name: str, *, overrides: Overrides | None = None) -> RunPlan:
    """The plan of a preset. Raises UserError for an unknown name, and where a volume has no target."""
    if name not in PRESETS:
        raise UserError(f"{name}: no such preset", f"there is {', '.join(PRESETS)}")
    paths = PRESETS[name].paths
    if paths[0].suffix == ".toml":
        return load_toml(paths[0], overrides=overrides)
    plans = [load_vdbench([path], lenient=True, overrides=overrides) for path in paths]
    steps = [
        _named(step, path.stem) for path, plan in zip(paths, plans, strict=True) for step in plan.plain_steps
    ]
    return RunPlan(name, steps, [notice for plan in plans for notice in plan.warnings])


def _named(step: PlanStep, stem: str) -> PlanStep:
    """The step labelled by its file: every published file calls its run rd1."""
    run: PlannedRun = step.run
    label = run.label.replace(run.name, stem, 1)
    spec = run.spec.model_copy(update={"name": label})
    return replace(step, run=replace(run, name=stem, label=label, spec=spec))
