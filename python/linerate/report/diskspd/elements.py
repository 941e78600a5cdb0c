"""Elements of the document, and the queues of a step that both of its parts show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from linerate.results import StepRecord

_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Queue:
    """A volume of a stream, as the spec of the run has both. is_alone: no other stream uses the volume."""

    stream: Mapping[str, Any]
    volume: Mapping[str, Any]
    outstanding: int
    is_alone: bool

    @property
    def path(self) -> str:
        """Where the volume is."""
        return str(self.volume.get("url") or self.volume["name"])


def queues_of(step: StepRecord) -> Iterator[Queue]:
    """The queues of a step in order. Streams take even turns in the queue of a volume that they share, and of a queue
    that volumes share each one has an even part."""
    volumes = {volume["name"]: volume for volume in step.spec.get("volumes", ())}
    streams = step.spec.get("streams", ())
    users = Counter(name for stream in streams for name in stream["volumes"])
    mates = Counter(volume["queue"]["name"] for volume in volumes.values() if volume.get("queue"))
    for stream in streams:
        for name in stream["volumes"]:
            volume = volumes[name]
            outstanding = int(volume.get("outstanding", 0))
            if volume.get("queue"):
                outstanding //= mates[volume["queue"]["name"]]
            yield Queue(stream, volume, max(outstanding // users[name], 1), users[name] == 1)


def add(parent: ElementTree.Element, name: str, value: object = None) -> ElementTree.Element:
    """A new element with a text: numbers as digits, truths as diskspd writes them."""
    element = ElementTree.SubElement(parent, name)
    if isinstance(value, bool):
        element.text = "true" if value else "false"
    elif value is not None:
        element.text = _NOT_IN_XML.sub("", str(value))
    return element
