"""Values of labels: whole numbers, words, and values by the names that their label lists."""

from __future__ import annotations

import re
from collections.abc import Sequence

from linerate.workload.iometer.lexer import IcfEntry
from linerate.workload.problems import Problems, SourceLocation, shorten

_WHOLE = re.compile(r"\d{1,20}", re.ASCII)


def whole(
    text: str, what: str, place: SourceLocation, problems: Problems, *, least: int = 0, most: int = 1 << 62
) -> int:
    """A whole number between two limits; the lower limit after a problem was noted. `what`: its name for messages."""
    text = text.strip()
    if not _WHOLE.fullmatch(text):
        problems.error(
            place, f"{what} {shorten(text) or 'missing'}: not a whole number", f"{least:,} or more"
        )
        return least
    number = int(text)
    if not least <= number <= most:
        problems.error(place, f"{what} {number:,}: out of range", f"{least:,} to {most:,}")
        return least
    return number


def word(text: str, what: str, known: Sequence[str], place: SourceLocation, problems: Problems) -> str:
    """One of a few words, in any case; the first after a problem was noted."""
    found = text.strip().upper()
    if found in known:
        return found
    problems.error(place, f"{what} {shorten(text.strip()) or 'missing'}: not known", " or ".join(known))
    return known[0]


def named(entry: IcfEntry, place: SourceLocation, text: str, problems: Problems) -> dict[str, str] | None:
    """The values of a line by the names that its label lists, lower case; None after a problem was noted.

    Older versions list fewer names and have fewer values; a comma behind the last value is left out.
    """
    known = {name.lower() for name in entry.row.fields}
    if strange := [name for name in entry.names if name not in known]:
        what = f"'{shorten(entry.label)}: no value is called {shorten(strange[0])!r}"
        problems.error(entry.place, what, f"write '{entry.row.text}")
        return None
    values = [value.strip() for value in text.removesuffix(",").split(",")]
    if len(values) != len(entry.names):
        what = f"{shorten(text)}: {len(values)} values for {len(entry.names)} names"
        problems.error(place, what, f"write one for each of {','.join(entry.names)}")
        return None
    return dict(zip(entry.names, values, strict=True))


def one_line(entry: IcfEntry, problems: Problems) -> str:
    """The only line below a label; empty after a problem was noted, or if there is none."""
    if len(entry.values) > 1:
        place, text = entry.values[1]
        problems.error(place, f"{shorten(text)}: a second value of '{shorten(entry.label)}", "remove it")
        return ""
    return entry.value
