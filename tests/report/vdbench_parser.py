"""A small reader of vdbench reports, written from the description of the format and not from the writer.

It copes with what real files do: columns found by the two header lines (5.04.07 has one more), `avg_2-1200`
glued to its timestamp, averages beside intervals, several runs in a file, NaN for CPU.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

_ROW = re.compile(r"^(\d\d:\d\d:\d\d\.\d\d\d)\s*(avg_\d+-\d+|\d+)\s+(.*)$")
_BANNER = re.compile(
    r"^(\d\d:\d\d:\d\d\.\d\d\d) Starting RD=([^;]+); I/O rate: ([^;]+); (.*); For loops: (.*)$"
)

Row = dict[str, str]


def text_lines(path: Path) -> list[str]:
    return html.unescape(
        re.sub(r"</?(?:title|pre|A|a|i|b)\b[^>]*>", "", path.read_text(encoding="utf-8"))
    ).splitlines()


def interval_report(path: Path) -> dict[str, list[Row]]:
    """Run name -> rows; each row by header, such as `i/o rate`, `resp time`, `cpu% sys+u`."""
    runs: dict[str, list[Row]] = {}
    run, names = "", [""]
    lines = text_lines(path)
    for number, line in enumerate(lines):
        if banner := _BANNER.match(line):
            run = banner[2]
            runs[run] = []
        elif re.match(r"^\w{3} \d\d, \d{4}\s+interval\s", line):
            upper = line.split("interval", 1)[1].split()
            names = [f"{a} {b}" for a, b in zip(upper, lines[number + 1].split(), strict=True)]
        elif row := _ROW.match(line):
            runs[run].append(
                {"time": row[1], "interval": row[2], **dict(zip(names, row[3].split(), strict=True))}
            )
    return runs


def flatfile(path: Path) -> list[Row]:
    """Rows by column name. Comments start with `*`; the header is the first line that starts with a blank."""
    names: list[str] = []
    rows = []
    for line in text_lines(path):
        if not line.startswith(" "):
            continue
        if names:
            rows.append(dict(zip(names, line.split(), strict=True)))
        else:
            names = line.split()
    return rows


def histogram(path: Path) -> dict[tuple[str, str], list[tuple[float, float, int]]]:
    """(run, section) -> (min ms, max ms, count)."""
    found: dict[tuple[str, str], list[tuple[float, float, int]]] = {}
    run = section = ""
    for line in text_lines(path):
        if banner := _BANNER.match(line):
            run = banner[2]
        elif line.endswith(":") and not line.startswith(" "):
            section = line[:-1]
            found[run, section] = []
        elif row := re.match(r"^\s*([\d.]+) <\s+([\d.]+|max)\s+(\d+)\s", line):
            top = float("inf") if row[2] == "max" else float(row[2])
            found[run, section].append((float(row[1]), top, int(row[3])))
    return found
