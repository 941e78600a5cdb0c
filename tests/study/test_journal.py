"""A journal is read as far as it goes, or refused with its line; it never ends in a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.study import StudyDirectory
from linerate.study.conduct import conduct

from tests.support.simulated import SimulatedLaboratory


@pytest.fixture
def journal(place: Path) -> Path:
    """Of a study that is complete."""
    conduct(place, SimulatedLaboratory(), lambda event: None, settle=lambda seconds: None)
    return place / "journal.jsonl"


@pytest.mark.parametrize(
    "tail",
    [b'{"type": "step", "key"', b'{"type": "step", "key": 7}\n', b"\0" * 300 + b"\n", b"\xff\xfe\n", b"\n"],
    ids=["cut off", "a field of another kind", "zeros", "no text", "empty"],
)
def test_a_last_line_that_was_torn_is_made_up_for(journal: Path, tail: bytes) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-2]) + tail)
    torn = StudyDirectory.open(journal.parent)
    assert (torn.state, len(torn.entries)) == ("interrupted", len(lines) - 2)
    laboratory = SimulatedLaboratory()
    done = conduct(journal.parent, laboratory, lambda event: None, settle=lambda seconds: None)
    assert (done.state, laboratory.runs) == ("complete", 1)


def test_a_damaged_line_among_others_is_named(journal: Path) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[3] = b"{}\n"
    journal.write_bytes(b"".join(lines))
    with pytest.raises(UserError, match=r"journal.jsonl:4: no entry"):
        StudyDirectory.open(journal.parent)


@pytest.mark.parametrize(
    ("kind", "name"), [("case", "default"), ("workload", "seqread"), ("san", "base-san")]
)
def test_a_journal_of_another_study_is_refused(journal: Path, kind: str, name: str) -> None:
    text = journal.read_text()
    assert f'"{kind}":"{name}"' in text
    journal.write_text(text.replace(f'"{kind}":"{name}"', f'"{kind}":"strange"'))
    with pytest.raises(UserError, match=f"{kind} 'strange' is not in study.json"):
        StudyDirectory.open(journal.parent)
