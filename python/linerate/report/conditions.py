"""The results of `compare --fail-if`: as lines for people, as JUnit XML for build servers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from linerate.analysis import ConditionResult
from linerate.errors import printable

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped (section 2.2)."""
_SUITE = "linerate compare"


def condition_lines(results: Sequence[ConditionResult]) -> list[str]:
    """One line per condition and step; none without conditions."""
    if not results:
        return []
    lines = ["", "conditions:"]
    for result in results:
        said = f"  {result.outcome:<13}  {result.condition}  [{result.step}] {result.sentence}"
        lines.append(printable(said))
    return lines


def junit_xml(results: Sequence[ConditionResult]) -> bytes:
    """JUnit XML with one test case per condition and step.

    A condition that holds is a failure. One that could not be judged is an error.
    """
    holds, errors = (
        sum(result.outcome == outcome for result in results) for outcome in ("holds", "not judged")
    )
    counts = {"tests": str(len(results)), "failures": str(holds), "errors": str(errors), "skipped": "0"}
    root = ElementTree.Element("testsuites", {"name": _SUITE, **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _SUITE, **counts})
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _clean(result.step), "name": _clean(result.condition)}
        )
        if result.outcome in ("holds", "not judged"):
            tag = "failure" if result.outcome == "holds" else "error"
            message = _clean(f"{result.condition}: {result.outcome}")
            ElementTree.SubElement(case, tag, {"message": message}).text = _clean(result.sentence)
        else:
            ElementTree.SubElement(case, "system-out").text = _clean(f"{result.outcome}: {result.sentence}")
    ElementTree.indent(root)
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)
