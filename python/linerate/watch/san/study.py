"""The SAN of a study's runs: live while its lab is up, and afterwards as the last run recorded it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from linerate.errors import LinerateError
from linerate.results import StepRecord
from linerate.study import Study, StudyDirectory
from linerate.study.laboratory.settings import changed_topology
from linerate.watch.feed import Update, clear
from linerate.watch.run import RunSource
from linerate.watch.san.figures import SAN_KINDS, san_update, traffic_update
from linerate.watch.san.lab import LabView

_DEEPEST = ".switch_queue_bytes_max"


class StudySan:
    """The SAN of whichever run of a study is looked at. Raises LinerateError for a directory that holds no study."""

    def __init__(self, study_directory: Path) -> None:
        self._study: Study = StudyDirectory.open(study_directory).study
        self._view: LabView | None = None
        self._refused = ""
        """A lab that cannot be asked: it is gone, or of another user."""
        self._shown = ""

    def poll(self, run: RunSource, *, is_over: bool) -> Iterator[Update]:
        """What is new. A lab that goes down is no trouble: what its runs recorded takes its place."""
        step = run.manifest.steps[-1] if run.manifest is not None and run.manifest.steps else None
        if step is None:
            return
        lab = str(step.san.get("facts", {}).get("lab", ""))
        if not lab and self._shown:
            self._shown = ""
            yield clear(SAN_KINDS)
        if lab and not is_over and lab != self._refused:
            try:
                yield from self._live(lab)
                return
            except LinerateError:
                self._refused = lab
        self.close()
        if lab and step.counters:
            yield from self._recorded(run.path.name, step)

    def close(self) -> None:
        """Hangs up."""
        view, self._view = self._view, None
        if view is not None:
            view.close()

    def _live(self, lab: str) -> Iterator[Update]:
        if self._view is None or self._view.name != lab:
            self.close()
            self._view = LabView(lab, may_pull=False)
            self._shown = lab
        yield from self._view.poll()

    def _recorded(self, run: str, step: StepRecord) -> Iterator[Update]:
        as_built = self._study.san(step.san["san"]).topology
        key = f"{run} {step.key}"
        if as_built is None or key == self._shown:
            return
        self._shown = key
        topology = changed_topology(as_built, self._study.settings(step.san["san"], step.san["case"]))
        facts = step.san["facts"]
        yield san_update(topology, (), may_pull=False, lab=facts["lab"], fabric=facts["fabric"], recorded=run)
        counted = dict(step.counters)
        counted |= {
            name.removesuffix("_max"): value for name, value in counted.items() if name.endswith(_DEEPEST)
        }
        yield traffic_update(topology, dict.fromkeys(counted, 0.0), counted)
