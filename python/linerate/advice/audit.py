"""One audit: the sources that a user names, read, joined with the user's answers and held against the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from linerate.advice.answers import parse_answers, with_answers
from linerate.advice.book import rules
from linerate.advice.dcb import with_dcb
from linerate.advice.derive import with_backup
from linerate.advice.documents.facts_file import read_facts
from linerate.advice.documents.image import read_image
from linerate.advice.documents.topology import read_topology
from linerate.advice.facts import AuditSubject, SanFactSheet, joined
from linerate.advice.iscsi.read import read_array
from linerate.advice.judge import RuleOutcome, judge
from linerate.advice.linux.read import read_linux
from linerate.advice.switch.classes import ISCSI_PRIORITY
from linerate.advice.switch.read import kind_of_switch, read_switch
from linerate.errors import UserError
from linerate.workload.url import without_secret

_HEAD_BYTES = 64
"""Enough to tell an image or JSON from a topology."""


@dataclass(frozen=True, slots=True)
class AuditSources:
    """What an audit reads. This host is read where nothing else is named, or where `devices` are."""

    places: Sequence[str] = ()
    """Topology files, names of shipped topologies, study directories, arrays (`iscsi://host`)."""
    facts: Sequence[Path] = ()
    switches: Sequence[str] = ()
    images: Sequence[Path] = ()
    devices: Sequence[str] = ()
    vlan: int | None = None
    answers: Sequence[str] = ()

    @property
    def reads_this_host(self) -> bool:
        """Whether this host is one of the sources."""
        return bool(self.devices) or not (self.places or self.facts or self.switches or self.images)


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Facts, what the rules say of them, and by published finding what a study of the sources measured."""

    sheet: SanFactSheet
    outcomes: list[RuleOutcome]
    evidence: dict[str, str] = field(default_factory=dict)
    of_this_host: int = 0
    """How many of the sheet's subjects, from the first on, are of this host."""

    def is_here(self, subject: AuditSubject) -> bool:
        """Whether a subject of an outcome is of this host; other hosts may have subjects of the same name."""
        return any(one is subject for one in self.sheet.subjects[: self.of_this_host])


def audit(sources: AuditSources) -> AuditResult:
    """Reads the sources and judges them. Nothing is changed.

    Raises UserError for a file that cannot be used, HostError for what this host does not show, and the error of who
    is to blame for an array that cannot be asked.
    """
    answers = parse_answers(sources.answers)
    evidence: dict[str, str] = {}
    sheets: list[SanFactSheet] = []
    if sources.reads_this_host:
        sheets.append(read_linux(devices=sources.devices))
    own = sum(len(one.subjects) for one in sheets)
    for place in sources.places:
        sheets.append(_of_place(place, evidence))
    sheets += [read_facts(path) for path in sources.facts]
    priority = answers.get("iscsi_priority", ISCSI_PRIORITY)
    sheets += [read_switch(given, sources.vlan, priority) for given in sources.switches]
    sheets += [read_image(path) for path in sources.images]
    sheet = completed(sheets, answers)
    return AuditResult(sheet, judge(sheet, rules()), evidence, own)


def completed(sheets: Iterable[SanFactSheet], answers: Mapping[str, str]) -> SanFactSheet:
    """The facts of all sources as one sheet, with what follows from several of them and with the user's answers."""
    return with_answers(with_dcb(with_backup(joined(sheets))), answers)


def _refuse_other_sources(place: str) -> None:
    """Raises UserError for what is read by an option, or not at all, with the way out."""
    if "://" in place:
        raise UserError(
            f"{without_secret(place)}: this kind of URL is no source of an audit",
            "give an array as iscsi://[user%secret@]host[:port][/target]",
        )
    try:
        with Path(place).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return  # the reader of topologies tells
    if head.startswith((b"vhdxfile", b"conectix")):
        raise UserError(f"{place}: a backup image", f"give it with --image {place}")
    if head.lstrip().startswith(b"{"):
        raise UserError(f"{place}: JSON, and no topology", f"give facts of a host with --facts {place}")
    if (kind := kind_of_switch(Path(place))) is not None:
        raise UserError(f"{place}: a configuration of {kind}", f"give it with --switch {place}")


def _of_place(place: str, evidence: dict[str, str]) -> SanFactSheet:
    """An array, a study directory, else a topology."""
    if place.lower().startswith("iscsi://"):
        return read_array(place)
    if Path(place).is_dir():
        from linerate.advice.documents.finished_study import read_study

        found = read_study(Path(place))
        evidence.update(found.evidence)
        return found.sheet
    from linerate.san import load_topology

    try:
        return read_topology(load_topology(place))
    except UserError:
        _refuse_other_sources(place)
        raise
