"""The options of one section with their values: read by name, checked, and noted where they are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from linerate.workload.fio.lexer import JobOption, JobSection
from linerate.workload.fio.refused import OF_WRITES
from linerate.workload.fio.tables import JobEffect, JobKeyword, find_keyword
from linerate.workload.fio.values import (
    Amount,
    JobValueError,
    by_direction,
    flag,
    last_amount,
    size_bytes,
    whole,
)
from linerate.workload.problems import Problems

_ONLY_READS = "changes nothing here: the job only reads"
T = TypeVar("T")
Parts = Callable[[str], tuple[str, str]]


class SectionOptions:
    """Options by keyword, later ones last. A value that cannot be read becomes its default after it was noted."""

    def __init__(self, section: JobSection, options: Mapping[str, JobOption], problems: Problems) -> None:
        self.section = section
        self._options = options
        self._problems = problems
        self.kb_base = 1024
        self.kb_base = self.value("kb_base", _kb_base, 1024)

    def __contains__(self, name: str) -> bool:
        return name in self._options

    def check_effects(self) -> None:
        """Refuses what Linerate does not have, and tells what has no effect."""
        for name, option in self._options.items():
            if (row := find_keyword(name)) is not None:
                self._check_effect(row, option)

    def _check_effect(self, row: JobKeyword, option: JobOption) -> None:
        value = option.value or "1"
        if row.effect is JobEffect.REFUSED or (row.effect is JobEffect.UNLESS and value not in row.harmless):
            accepted = (
                f"leave it out, or write {row.name}={row.harmless[0]}" if row.harmless else "leave it out"
            )
            if row.name in OF_WRITES and self.only_reads:
                self.notice(row.name, _ONLY_READS)
            else:
                self.refuse(row.name, row.meaning, accepted)
        elif row.effect is JobEffect.NONE and not row.silent:
            self._problems.notice(option.place, f"{option.text}: no effect, {row.meaning}")

    @property
    def only_reads(self) -> bool:
        """rw= has no writes, or its mix has none."""
        kind = self.text("rw", "read").partition(":")[0].strip()
        share = self.later("rwmixread", "rwmixwrite")
        all_reads = self.text(share, "").strip(" %") == ("100" if share == "rwmixread" else "0")
        return kind in ("read", "randread") or (kind in ("rw", "readwrite", "randrw") and all_reads)

    def notice_only_reads(self, *names: str) -> None:
        """Notes which of these keywords of writes are there, in a job that only reads."""
        for name in names:
            if self.is_on(name):
                self.notice(name, _ONLY_READS)

    def refuse(self, name: str, reason: str, accepted: str) -> None:
        """Notes that a keyword is not supported as it is written here."""
        option = self._options[name]
        self._problems.error(option.place, f"{option.text}: is not supported: {reason}", accepted)

    def notice(self, name: str, what: str) -> None:
        """Notes how a keyword was read."""
        option = self._options[name]
        self._problems.notice(option.place, f"{option.text}: {what}")

    def error(self, what: str, accepted: str = "") -> None:
        """Notes what is wrong with the job as a whole."""
        self._problems.error(self.section.place, f"[{self.section.name}]: {what}", accepted)

    def text(self, name: str, default: str) -> str:
        """The value as it is written; `1` of a keyword that is alone."""
        option = self._options.get(name)
        if option is None:
            return default
        return "1" if option.value is None else option.value

    def is_on(self, name: str) -> bool:
        """Whether a keyword is there with another value than 0 or none."""
        return self.text(name, "0") not in ("0", "none")

    def value(self, name: str, read: Callable[[str], T], default: T) -> T:
        """The value by its reader, or the default after a problem was noted."""
        option = self._options.get(name)
        if option is None:
            return default
        try:
            return read("1" if option.value is None else option.value)
        except JobValueError as error:
            row = find_keyword(name)
            accepted = f"write {name}={row.accepted}" if row else ""
            self._problems.error(option.place, f"{option.text}: {error}", accepted)
            return default

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number between two limits."""
        number = self.value(name, whole, default)
        if not least <= number <= most:
            option = self._options[name]
            self._problems.error(option.place, f"{option.text}: out of range", f"{least} to {most:,}")
            return default
        return number

    def flag(self, name: str) -> bool:
        """0 or 1; 0 if it is not there. fio takes any number for a keyword that may be alone."""
        row = find_keyword(name)
        if row is not None and row.alone:
            return self.value(name, lambda text: whole(text) != 0, False)
        return self.value(name, flag, False)

    def size(self, text: str) -> int:
        """Bytes, with the section's kb_base."""
        return size_bytes(text, self.kb_base)

    def amount(self, text: str) -> Amount:
        """Bytes or percent, with the section's kb_base. Of several with colons between them the last one counts."""
        return last_amount(text, self.kb_base)

    def by_direction(
        self, name: str, read: Callable[[str], T], default: T, *, parts: Parts = by_direction
    ) -> tuple[T, T]:
        """Values for reads and for writes; a part that is not given is the default. parts: how they are separated."""

        def both(text: str) -> tuple[T, T]:
            one, other = (read(part) if part else default for part in parts(text))
            return one, other

        return self.value(name, both, (default, default))

    def command(self, name: str) -> tuple[str, ...]:
        """A command, if there is one."""
        text = self.text(name, "")
        return (text,) if text else ()

    def later(self, one: str, other: str) -> str:
        """Which of two keywords is written later; the first if neither is there."""
        there = [name for name in self._options if name in (one, other)]
        return there[-1] if there else one

    def as_written(self) -> Mapping[str, str]:
        """All options with their values, for results in fio's form."""
        return {name: self.text(name, "") for name in self._options}


def _kb_base(text: str) -> int:
    if text not in ("1000", "1024"):
        raise JobValueError("neither 1000 nor 1024")
    return int(text)
