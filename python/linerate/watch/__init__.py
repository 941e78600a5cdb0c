"""A web page that shows a run, a study, an array or a lab while it works, and `/metrics` for Prometheus.

Open this file first. `source` says what is watched; `run`, `study`, `array` and `san` read it and tell what is new as
messages; `feed` numbers them, `live` polls and hands them out, `server` puts them on HTTP beside the files of `page`,
and `cable` lets the page of a lab pull its cables; `beside` starts all that in a process of its own. Everything is read
from the directory that a run or a study writes anyway, from an array's control API or from a lab's supervisor, so the
run does no work for it.
"""

from linerate.watch.array import ArraySource
from linerate.watch.beside import page_beside
from linerate.watch.san import LabSource
from linerate.watch.server import PageServer
from linerate.watch.source import DirectorySource, Source, directory_to_watch

__all__ = [
    "ArraySource",
    "DirectorySource",
    "LabSource",
    "PageServer",
    "Source",
    "directory_to_watch",
    "page_beside",
]
