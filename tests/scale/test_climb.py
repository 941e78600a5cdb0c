"""The runs of a search on null volumes: what is kept of one that was interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.results import WorkloadSource
from linerate.run import Here
from linerate.scale import Climb, Reached, ScaleRecord, SearchLimits, Threshold, climb
from linerate.volumes import Consent
from linerate.workload import LunMap, Overrides, load_workload

from tests.scale.test_command import workload


@pytest.mark.long
def test_the_record_holds_every_run_that_was_made(tmp_path: Path) -> None:
    file = workload(tmp_path, "0.2s", "0.1s")
    plan = load_workload(Path(file), overrides=Overrides(luns=LunMap({"*": "null:64m"})))
    asked = Climb(
        plan,
        WorkloadSource(name="reads"),
        "threads",
        Threshold("mean", 1000.0),
        SearchLimits(1000.0, most=8),
        tmp_path / "out",
        Consent.nothing(),
        Here(),
    )
    told: list[Reached] = []

    def tell(reached: Reached) -> None:
        told.append(reached)
        if len(told) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        climb(asked, tell, lambda event: None)
    record = ScaleRecord.open(tmp_path / "out")
    assert [run.load for run in record.runs] == [run.load for run in told]
    assert all((tmp_path / "out" / run.directory / "manifest.json").is_file() for run in record.runs)
    assert {run.in_flight for run in record.runs} == {run.load for run in record.runs}
    assert all(set(run.demands_s) == {"CPU load"} for run in record.runs)
    assert record.procedure.next() is not None
