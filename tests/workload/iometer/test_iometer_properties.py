"""Any configuration that a writer makes is read as it was meant, and any damaged one is a plan or a UserError."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, RunPlan
from linerate.workload.iometer import load_iometer
from linerate.workload.spec import SizeMix

from .writer import Icf, Spec, Work

QUIET = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NULL = Overrides(luns=LunMap({"*": "null:8g"}))
NAMES = (
    st.text("abcXYZ 019%;&/()-+", min_size=1, max_size=20)
    .map(str.strip)
    .filter(lambda name: name and name.lower() != "idle")
)
SIZES = st.sampled_from((512, 1024, 4096, 8192, 65536, 1 << 20))
PERCENT = st.integers(0, 100)


@st.composite
def specifications(draw: st.DrawFn, name: str) -> Spec:
    """Lines that Linerate takes: without pauses."""
    cuts = sorted(draw(st.lists(st.integers(1, 99), max_size=3, unique=True)))
    shares = [end - start for start, end in zip([0, *cuts], [*cuts, 100], strict=True)]
    aligns = st.sampled_from((0, 512, 4096))
    lines = [(draw(SIZES), share, draw(PERCENT), draw(PERCENT), 0, 1, draw(aligns), 0) for share in shares]
    return Spec(name, lines)


@st.composite
def configurations(draw: st.DrawFn) -> Icf:
    """Whole ones."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=str.lower))
    specs = [draw(specifications(name)) for name in names]
    workers = [
        Work(
            name=f"w{number}",
            specs=draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)),
            targets=draw(st.lists(st.sampled_from("pqrst"), min_size=1, max_size=3, unique=True)),
            outstanding=draw(st.integers(1, 300)),
            start=draw(st.integers(0, 1 << 20)),
            sectors=draw(st.one_of(st.just(0), st.integers(1 << 16, 1 << 22))),
            pattern=draw(st.integers(0, 2)),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    return Icf(specs, workers, run_s=draw(st.integers(1, 100_000)), ramp_s=draw(st.integers(0, 600)))


def read(content: bytes) -> RunPlan:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.icf"
        path.write_bytes(content)
        return load_iometer(path, overrides=NULL)


@pytest.mark.long
@QUIET
@given(configurations())
def test_what_a_writer_says_is_what_is_run(icf: Icf) -> None:
    runs = list(read(icf.text().encode()).steps())
    assert len(runs) == max(len(worker.specs) for worker in icf.workers)
    specs = {spec.name: spec for spec in icf.specs}
    for nth, run in enumerate(runs):
        active = [worker for worker in icf.workers if nth < len(worker.specs)]
        assert (run.spec.elapsed_s, run.spec.warmup_s) == (icf.run_s, icf.ramp_s)
        assert [stream.name for stream in run.spec.streams] == [worker.name for worker in active]
        asked = sum(worker.outstanding * len(worker.targets) for worker in active)
        assert sum(volume.outstanding for volume in run.spec.volumes) == asked
        for worker, stream in zip(active, run.spec.streams, strict=True):
            lines = specs[worker.specs[nth]].lines
            assert len(stream.volumes) == len(worker.targets)
            assert stream.random_percent == pytest.approx(sum(line[1] * line[3] for line in lines) / 100)
            kinds = [(part.size_bytes, part.share_percent, part.random_percent) for part in stream.mix]
            assert kinds in ([], [(line[0], line[1], line[3]) for line in lines])
            assert kinds or len({line[3] for line in lines}) == 1
            assert stream.read_percent == pytest.approx(sum(line[1] * line[2] for line in lines) / 100)
            for sizes, side in ((stream.sizes, 1), (stream.write_sizes or stream.sizes, 0)):
                weights: dict[int, float] = {}
                for size, share, reads, *_ in lines:
                    weight = share * (reads if side else 100 - reads)
                    weights[size] = weights.get(size, 0) + weight
                if total := sum(weights.values()):
                    assert isinstance(sizes, SizeMix)
                    wanted = {size: 100 * weight / total for size, weight in weights.items() if weight}
                    assert dict(sizes.parts) == pytest.approx(wanted)
        for volume in run.spec.volumes:
            assert volume.first_byte % 512 == 0


TEXTS = configurations().map(Icf.text)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Bytes removed, put in, replaced; lines exchanged, doubled, removed."""
    content = draw(TEXTS).encode()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        match draw(st.integers(0, 5)):
            case 0:
                content = content[:at] + content[at + draw(st.integers(1, 40)) :]
            case 1:
                content = content[:at] + draw(st.binary(min_size=1, max_size=6)) + content[at:]
            case 2:
                content = content[:at]
            case 3:
                number = str(draw(st.integers(-5, 1 << 70))).encode()
                content = content[:at] + number + content[at + len(number) :]
            case _:
                lines = content.split(b"\n")
                one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
                lines[one : one + draw(st.integers(0, 2))] = [lines[other]]
                content = b"\n".join(lines)
    return content


@pytest.mark.long
@QUIET
@given(st.one_of(damaged(), st.binary(max_size=80), st.text(max_size=80).map(str.encode)))
def test_a_damaged_file_is_a_plan_or_a_user_error_with_a_place(content: bytes) -> None:
    refused: list[UserError] = []
    try:
        for run in read(content).steps():
            assert run.spec.seam_json()
    except UserError as error:
        refused.append(error)
    assert all("w.icf" in error.message and "\x1b" not in error.message for error in refused)
