"""A web page that shows a run, a study or an array while it works, and `/metrics` for Prometheus.

Open this file first. `source` says what is watched; `run`, `study` and `array` read it and tell what is new as
messages; `feed` numbers them, `live` polls and hands them out, `server` puts them on HTTP beside the files of `page`;
`beside` starts all that in a process of its own. Everything is read from the directory that a run or a study writes
anyway, or from an array's control API, so the run does no work for it.
"""

from linerate.watch.array import ArraySource
from linerate.watch.beside import page_beside
from linerate.watch.server import PageServer
from linerate.watch.source import DirectorySource, Source, directory_to_watch

__all__ = ["ArraySource", "DirectorySource", "PageServer", "Source", "directory_to_watch", "page_beside"]
